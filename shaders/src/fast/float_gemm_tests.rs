//! Float matrices: every level gives the bits of the scalar twin, wherever work is cut; and the twin's numbers are right.

use super::float_gemm::{FloatPacked, gemm, multiply};
use super::gemm_tests::{Random, assert_same, levels};
use super::{Level, Pane};
use crate::formats::{Format, WeightView};

fn matrix(random: &mut Random, format: Format, rows: usize, cols: usize) -> Vec<u8> {
    let numbers = random.numbers(rows * cols);
    match format.name() {
        "f32" => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        "f16" => numbers.iter().flat_map(|number| half::f16::from_f32(*number).to_le_bytes()).collect(),
        _ => numbers.iter().flat_map(|number| half::bf16::from_f32(*number).to_le_bytes()).collect(),
    }
}

fn product(level: Level, w: &WeightView<'_>, x: &[&[f32]]) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len() * w.rows()];
    gemm(level, w, 0..w.rows(), x, &mut FloatPacked::default(), &mut Pane::new(&mut out, w.rows()));
    out
}

#[test]
fn every_level_has_the_twins_bits_which_are_near_the_sum() {
    let mut random = Random(21);
    for format in [Format::F32, Format::F16, Format::BF16] {
        for (rows, cols) in [(1, 1), (15, 7), (16, 64), (33, 100), (130, 300), (40, 2100)] {
            let bytes = matrix(&mut random, format, rows, cols);
            let w = WeightView::new(format, rows, cols, &bytes).unwrap();
            for count in [1usize, 2, 5, 6, 7, 20] {
                let numbers = random.numbers(count * cols);
                let x: Vec<&[f32]> = numbers.chunks_exact(cols).collect();
                let want = product(Level::Portable, &w, &x);
                levels()
                    .for_each(|level| assert_same(&product(level, &w, &x), &want, &format!("{level:?} {format:?} {rows}x{cols} {count}")));
                let decoded = w.decode();
                for (index, got) in want.iter().enumerate() {
                    let terms = x[index / rows].iter().zip(&decoded[index % rows * cols..]).map(|(x, w)| f64::from(*x) * f64::from(*w));
                    let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                    assert!((f64::from(*got) - sum).abs() <= 3e-6 * size, "{got} for {sum}");
                }
            }
        }
    }
}

#[test]
fn cuts_and_faults_stay_where_they_are() {
    let mut random = Random(22);
    let (rows, cols, count) = (100, 1500, 20);
    let bytes = matrix(&mut random, Format::F32, rows, cols);
    let w = WeightView::new(Format::F32, rows, cols, &bytes).unwrap();
    let mut numbers = random.numbers(count * cols);
    numbers[7 * cols + 3] = f32::NAN;
    numbers[8 * cols + 3] = f32::INFINITY;
    let x: Vec<&[f32]> = numbers.chunks_exact(cols).collect();
    for level in levels().filter(|level| *level != Level::Portable) {
        let want = product(level, &w, &x);
        assert!(want.iter().enumerate().all(|(index, y)| y.is_finite() != (7..9).contains(&(index / rows))));
        for _ in 0..10 {
            let (cut, row_cut) = (random.below(rows + 1), random.below(count + 1));
            let mut out = vec![f32::NAN; count * rows];
            for some in [0..row_cut, row_cut..count].into_iter().filter(|some| !some.is_empty()) {
                let mut pane = Pane::new(&mut out[some.start * rows..some.end * rows], rows);
                for range in [0..cut, cut..rows] {
                    let mut packed = FloatPacked::default();
                    packed.pack(level, &w, range.clone());
                    multiply(level, &packed, &x[some.clone()], &mut pane.columns(range));
                }
            }
            assert_same(&out, &want, &format!("{level:?} cut at {cut}, {row_cut}"));
        }
    }
}
