//! Panels against the exact decoders.

use super::Level;
use super::gemv::tests::{Random, matrix, same};
use super::panel::PanelRow;
use crate::formats::{Format, WeightView};

/// A decoded row: bytes, scales, minimums.
pub(crate) type Row = (Vec<u8>, Vec<f32>, Vec<f32>);

pub(crate) fn panel(format: Format, level: Level, w: &WeightView<'_>, row: usize) -> Row {
    let panel = format.panel().unwrap();
    let cols = super::padded(w.cols());
    let (mut values, mut scales, mut mins) = (vec![0; cols], vec![9.0; cols / panel.group], vec![9.0; cols / panel.group]);
    let (bytes, apart) = w.row(row);
    (panel.decode_at)(level, bytes, apart, &mut PanelRow { values: &mut values, scales: &mut scales, mins: &mut mins });
    (values, scales, mins)
}

/// Numbers that differ by a few units of the last place of the largest in their group, or are not finite together.
fn assert_near(format: Format, numbers: &[f32], (values, scales, mins): &Row) {
    let panel = format.panel().unwrap();
    for (group, numbers) in numbers.chunks(panel.group).enumerate() {
        let (scale, min) = (scales[group], mins[group]);
        let largest = f64::from(scale.abs()) * f64::from(panel.most) + f64::from(min.abs());
        for (at, number) in numbers.iter().enumerate() {
            let u = values[group * panel.group + at];
            assert!(u <= panel.most, "{format:?}: {u}");
            let got = f64::from(scale) * f64::from(u) - f64::from(min);
            // Scales so large that the minimum overflows show as a fault, though the number itself may be finite.
            if !min.is_finite() || !scale.is_finite() || got.abs() > f64::from(f32::MAX) {
                assert!(!(scale * f32::from(u) - min).is_finite(), "{format:?} {group} {at}: {number:e} from {scale:e} {u} {min:e}");
                assert!(!number.is_finite() || largest > 1e36, "{format:?} {group} {at}: {number:e} is finite");
                continue;
            }
            let off = (got - f64::from(*number)).abs();
            assert!(off <= largest * 2.5e-7 + 1e-44, "{format:?} {group} {at}: {got:e} is not {number:e}, by {off:e} of {largest:e}");
        }
    }
}

fn check(format: Format, rows: usize, cols: usize, bytes: &[u8]) {
    let w = WeightView::new(format, rows, cols, bytes).unwrap();
    for row in 0..rows {
        let mut numbers = vec![0.0; cols];
        w.decode_row(row, &mut numbers);
        let portable = panel(format, Level::Portable, &w, row);
        assert_near(format, &numbers, &portable);
        if numbers.iter().all(|number| number.is_finite() && number.abs() < 1e30) {
            // Padding.
            assert!(portable.1.iter().chain(&portable.2).all(|number| number.is_finite()), "{format:?} {cols}: {portable:?}");
        }
        for level in Level::ALL.into_iter().filter(|level| level.is_here()) {
            let got = panel(format, level, &w, row);
            let equal = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| same(*a, *b));
            assert!(got.0 == portable.0 && equal(&got.1, &portable.1) && equal(&got.2, &portable.2), "{format:?} {level:?} {cols}");
        }
    }
}

/// Usual numbers and any bytes, in widths with short tails.
#[test]
fn panels_are_near_the_exact_decoders() {
    let mut random = Random(5);
    for format in Format::ALL.iter().copied().filter(|format| format.panel().is_some()) {
        for cols in [1, 2, 31, 32, 63, 64, 65, 96, 128, 130, 192, 224, 256, 288, 320, 500, 512, 768, 1000, 1280] {
            let Some(size) = format.matrix_bytes(3, cols) else { continue };
            check(format, 3, cols, &matrix(format, 3, cols, &mut random));
            for _ in 0..40 {
                let bytes: Vec<u8> = (0..size).map(|_| random.byte()).collect();
                check(format, 3, cols, &bytes);
            }
        }
    }
}

/// Formats of small integers have panels, and formats of floats have none.
#[test]
fn every_format_of_small_integers_has_a_panel() {
    for format in Format::ALL {
        let floats = ["f32", "f16", "bf16"].contains(&format.name()) || format.name().starts_with("fp8");
        assert_eq!(format.panel().is_none(), floats, "{format:?}");
    }
}

/// All codes of bytes of scales occur: the exact decoder says what they are.
#[test]
fn every_scale_is_the_decoders() {
    for (format, at, count) in [(Format::MXFP4_GGML, 0, 1), (Format::NVFP4, 0, 4)] {
        for code in 0..=255u8 {
            let cols = 256;
            let size = format.row_bytes(cols).unwrap();
            let mut bytes: Vec<u8> = (0..size).map(|at| (at * 37) as u8).collect();
            for block in bytes.chunks_mut(if count == 1 { 17 } else { 36 }) {
                block[at..][..count].fill(code);
            }
            check(format, 1, cols, &bytes);
        }
    }
    for code in 0..=255u8 {
        let mut bytes: Vec<u8> = (0..128).map(|at| (at * 37) as u8).collect();
        bytes.extend([code; 8]);
        check(Format::MXFP4, 1, 256, &bytes);
    }
}

/// By hand: a block of `q4_0` with d = 0.5 has the codes 0 and 15 in its first byte.
#[test]
fn a_panel_by_hand() {
    let mut bytes = vec![0x00, 0x38, 0xf0];
    bytes.resize(18, 0x88);
    let w = WeightView::new(Format::Q4_0, 1, 32, &bytes).unwrap();
    for level in Level::ALL.into_iter().filter(|level| level.is_here()) {
        let (values, scales, mins) = panel(Format::Q4_0, level, &w, 0);
        assert_eq!((values[0], values[16], values[1]), (0, 15, 8));
        assert_eq!((scales[0], mins[0]), (0.5, 4.0));
    }
}
