//! Every kernel against its portable twin, and the twin against exact numbers.

use super::*;
use crate::fast::acts::UNIT;
use crate::fast::panel_tests::panel;

/// Random numbers, the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    pub(crate) fn byte(&mut self) -> u8 {
        (self.next() >> 33) as u8
    }

    /// From -1 to 1.
    pub(crate) fn number(&mut self) -> f32 {
        ((self.next() >> 40) as f32 / (1u32 << 23) as f32) - 1.0
    }
}

/// Formats with panels.
fn formats() -> Vec<Format> {
    Format::ALL.iter().copied().filter(|format| format.panel().is_some()).collect()
}

/// Levels of this machine but the portable one.
fn levels() -> Vec<Level> {
    Level::ALL.into_iter().filter(|level| level.is_here() && *level != Level::Portable).collect()
}

/// Widths that a format has, short tails among them.
fn widths(format: Format) -> Vec<usize> {
    let widths = [1, 2, 31, 32, 63, 64, 65, 96, 128, 130, 192, 224, 256, 288, 320, 500, 512, 544, 768, 1000, 1280];
    let widths: Vec<usize> = widths.into_iter().filter(|cols| format.row_bytes(*cols).is_some()).collect();
    assert!(!widths.is_empty(), "{format:?}");
    widths
}

/// A matrix of random bytes whose numbers are all finite and of usual size.
pub(crate) fn matrix(format: Format, rows: usize, cols: usize, random: &mut Random) -> Vec<u8> {
    let width = format.row_bytes(cols).unwrap();
    let mut bytes: Vec<u8> = (0..rows * width).map(|_| random.byte()).collect();
    match format.scale_bytes(cols).unwrap() {
        // Scales are inside blocks: each is drawn until it is usual.
        0 => {
            let block = (1..=256).find(|cols| format.row_bytes(*cols).is_some()).unwrap();
            let mut numbers = vec![0.0; block];
            for bytes in bytes.chunks_mut(format.row_bytes(block).unwrap()) {
                while {
                    format.decode_row(bytes, &[], &mut numbers);
                    !numbers.iter().all(|number| number.abs() < 1e4)
                } {
                    bytes.iter_mut().for_each(|byte| *byte = random.byte());
                }
            }
        }
        scales if format == Format::MXFP4 => bytes.extend((0..rows * scales).map(|_| 115 + random.byte() % 16)),
        scales => (0..rows * scales / 4).for_each(|_| bytes.extend((random.number() * 0.1).to_le_bytes())),
    }
    bytes
}

fn acts(rows: usize, cols: usize, random: &mut Random) -> (Vec<f32>, Acts) {
    let mut acts = Acts::default();
    acts.reset(rows, cols);
    let x: Vec<f32> = (0..rows * cols).map(|_| random.number() * 3.0).collect();
    x.chunks_exact(cols).enumerate().for_each(|(row, x)| acts.set(row, x));
    (x, acts)
}

pub(crate) fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn run(level: Level, w: &WeightView<'_>, rows: Range<usize>, acts: &Acts, act_rows: Range<usize>) -> Vec<f32> {
    let mut out = vec![9.0; rows.len() * act_rows.len()];
    gemv(level, w, rows, acts, act_rows, &mut out);
    out
}

#[test]
fn every_level_has_the_bits_of_the_portable_twin() {
    let mut random = Random(1);
    for format in formats() {
        for cols in widths(format) {
            let bytes = matrix(format, 7, cols, &mut random);
            let w = WeightView::new(format, 7, cols, &bytes).unwrap();
            let (_, acts) = acts(17, cols, &mut random);
            let want = run(Level::Portable, &w, 0..7, &acts, 0..17);
            for level in levels() {
                for (rows, act_rows) in
                    [(0..7, 0..17), (0..1, 3..4), (2..4, 0..2), (6..7, 5..8), (1..6, 12..16), (3..3, 0..1), (0..2, 4..4)]
                {
                    let got = run(level, &w, rows.clone(), &acts, act_rows.clone());
                    let mut got = got.into_iter();
                    for act in act_rows.clone() {
                        for row in rows.clone() {
                            let (got, want) = (got.next().unwrap(), want[act * 7 + row]);
                            assert!(same(got, want), "{format:?} {level:?} {cols} {row} {act} of {rows:?} {act_rows:?}: {got:e}, {want:e}");
                        }
                    }
                }
            }
        }
    }
}

/// Random bytes have scales that are infinite, NaN or huge.
#[test]
fn every_level_has_the_bits_of_the_portable_twin_for_any_bytes() {
    let mut random = Random(2);
    for format in formats() {
        let cols = *widths(format).last().unwrap();
        for _ in 0..20 {
            let bytes: Vec<u8> = (0..format.matrix_bytes(3, cols).unwrap()).map(|_| random.byte()).collect();
            let w = WeightView::new(format, 3, cols, &bytes).unwrap();
            let (_, acts) = acts(5, cols, &mut random);
            let want = run(Level::Portable, &w, 0..3, &acts, 0..5);
            for level in levels() {
                let got = run(level, &w, 0..3, &acts, 0..5);
                assert!(got.iter().zip(&want).all(|(got, want)| same(*got, *want)), "{format:?} {level:?}: {got:?}, {want:?}");
            }
        }
    }
}

/// A number that is not finite shows in its row's results, and in no other's.
#[test]
fn faults_show() {
    let mut random = Random(3);
    for format in formats() {
        let cols = *widths(format).last().unwrap();
        let bytes = matrix(format, 3, cols, &mut random);
        let w = WeightView::new(format, 3, cols, &bytes).unwrap();
        let (mut x, mut acts) = acts(3, cols, &mut random);
        for fault in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            x[cols + cols / 2] = fault;
            acts.set(1, &x[cols..][..cols]);
            for level in Level::ALL.into_iter().filter(|level| level.is_here()) {
                let y = run(level, &w, 0..3, &acts, 0..3);
                for (at, y) in y.iter().enumerate() {
                    assert_eq!(y.is_finite(), at / 3 != 1, "{format:?} {level:?} {fault}: {at} is {y}");
                }
            }
        }
    }
}

/// Against the exact product of the weights with the activations' own int8 numbers, and with the activations.
#[test]
fn products_are_those_of_the_decoder() {
    let mut random = Random(4);
    for format in formats() {
        for cols in widths(format) {
            let bytes = matrix(format, 5, cols, &mut random);
            let w = WeightView::new(format, 5, cols, &bytes).unwrap();
            let (x, acts) = acts(2, cols, &mut random);
            let got = run(Level::best(), &w, 0..5, &acts, 0..2);
            for (index, got) in got.iter().enumerate() {
                let (act, row) = (index / 5, index % 5);
                let mut numbers = vec![0.0; cols];
                w.decode_row(row, &mut numbers);
                let act_row = acts.row(act);
                // With int8 activations only f32 rounds, and the offset cancels; with exact ones each is off by half a step.
                let (mut near, mut exact, mut size, mut noise) = (0f64, 0f64, 0f64, 0f64);
                for (col, weight) in numbers.iter().map(|weight| f64::from(*weight)).enumerate() {
                    let step = f64::from(act_row.scales[col / 32]);
                    near += weight * f64::from(act_row.q[col]) * step;
                    exact += weight * f64::from(x[act * cols + col]);
                    noise += weight.abs() * step * 0.5001;
                }
                // The bytes are offset: what cancels is rounded as well.
                let (_, scales, mins) = panel(format, Level::Portable, &w, row);
                let group = format.panel().unwrap().group;
                for (index, (scale, min)) in scales.iter().zip(&mins).enumerate() {
                    let most = f64::from(scale.abs()) * f64::from(format.panel().unwrap().most) + f64::from(min.abs());
                    size += most * f64::from(act_row.scales[index * group / 32]) * 127.0 * group as f64;
                }
                let off = (f64::from(*got) - near).abs();
                assert!(off <= size * 1e-6, "{format:?} {cols}: {got} is not {near}, off by {off:e} of {:e}", size * 1e-6);
                assert!((f64::from(*got) - exact).abs() <= noise + size * 1e-6, "{format:?} {cols}: {got} is not {exact}");
            }
        }
    }
}

/// By hand: two numbers, one group; the order of sums does not matter.
#[test]
fn a_product_by_hand() {
    let mut values = vec![2u8, 0xfd];
    values.extend(0.5f32.to_le_bytes());
    let w = WeightView::new(Format::INT8_ROW, 1, 2, &values).unwrap();
    let mut acts = Acts::default();
    acts.reset(1, 2);
    acts.set(0, &[127.0, -64.0]);
    for level in Level::ALL.into_iter().filter(|level| level.is_here()) {
        assert_eq!(run(level, &w, 0..1, &acts, 0..1), [0.5 * (2.0 * 127.0 + 3.0 * 64.0)], "{level:?}");
    }
}

/// A format's own kernels run where they are promised, so that the tests above are of them.
#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_are_the_promised_ones() {
    for format in formats() {
        assert_eq!(kernel_of(format, Level::Portable), Some("portable"));
    }
    let direct = "int8-row int8-g64 int4-row int4-g64 int4-row-tc int4-g64-tc int4-g64-planar mxfp4 mxfp4-ggml \
                  q8_0 q4_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs";
    for format in formats() {
        let kind = if direct.split_whitespace().any(|name| name == format.name()) { "direct" } else { "panel" };
        assert_eq!(kernel_of(format, Level::Avx2), Some(format!("{kind}-avx2").as_str()), "{format:?}");
        assert_eq!(kernel_of(format, Level::Avx512), Some(format!("{kind}-avx512").as_str()), "{format:?}");
    }
    assert_eq!(kernel_of(Format::F32, Level::Portable), None);
    assert_eq!(UNIT % crate::fast::CHUNK, 0);
}
