//! Every level gives the bits of the scalar twin, wherever work is cut; and the twin's numbers are right.

use super::gemm::{Form, Packed, STRIP, multiply};
use super::panel::PanelRow;
use super::{Acts, Level, Pane};

/// Numbers that look random: a generator of 64 bits.
pub(super) struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.bits() as usize % end
    }

    /// Between -1 and 1.
    pub fn number(&mut self) -> f32 {
        self.bits() as f32 / (1u64 << 30) as f32 - 1.0
    }

    pub fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.number()).collect()
    }
}

/// Levels that this machine has.
pub(super) fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_here())
}

/// Equal bits, where one NaN is as good as another.
pub(super) fn assert_same(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (index, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{what}: number {index} is {got:e}, not {want:e}");
    }
}

/// Stored rows of a format made for tests: bytes, then scales and minimums as f32 in the row of scales.
struct Weights {
    form: Form,
    rows: usize,
    cols: usize,
    values: Vec<u8>,
    scales: Vec<u8>,
}

impl Weights {
    fn new(random: &mut Random, group: usize, most: u8, rows: usize, cols: usize) -> Self {
        let form = Form { cols, group, most };
        let values = (0..rows * cols).map(|_| (random.bits() % (u32::from(most) + 1)) as u8).collect();
        let numbers = random.numbers(rows * 2 * cols.div_ceil(group));
        Self { form, rows, cols, values, scales: numbers.iter().flat_map(|number| number.to_le_bytes()).collect() }
    }

    fn row(&self, row: usize) -> (&[u8], &[u8]) {
        let scales = 8 * self.cols.div_ceil(self.form.group);
        (&self.values[row * self.cols..][..self.cols], &self.scales[row * scales..][..scales])
    }

    fn pack(&self, level: Level, rows: std::ops::Range<usize>) -> Packed {
        let mut packed = Packed::default();
        // What was packed before leaves no trace.
        packed.pack_by(level, self.form, (rows.len() + 7).min(self.rows), |row, to| self.decode(row, to));
        packed.pack_by(level, self.form, rows.len(), |row, to| self.decode(rows.start + row, to));
        packed
    }

    fn decode(&self, row: usize, to: &mut PanelRow<'_>) {
        let (values, scales) = self.row(row);
        // Padding is anything.
        to.values.fill(255);
        to.values[..values.len()].copy_from_slice(values);
        let groups = values.len().div_ceil(self.form.group);
        let number = |index: usize| f32::from_le_bytes(scales[4 * index..][..4].try_into().unwrap());
        to.scales.fill(3.0);
        to.mins.fill(5.0);
        for group in 0..groups {
            (to.scales[group], to.mins[group]) = (number(group), number(groups + group));
        }
    }

    fn numbers(&self, row: usize) -> Vec<f64> {
        let (values, scales) = self.row(row);
        let number = |index: usize| f64::from(f32::from_le_bytes(scales[4 * index..][..4].try_into().unwrap()));
        let groups = self.cols.div_ceil(self.form.group);
        let of = |(col, u): (usize, &u8)| {
            let group = col / self.form.group;
            number(group) * f64::from(*u) - number(groups + group)
        };
        values.iter().enumerate().map(of).collect()
    }
}

fn acts(random: &mut Random, rows: usize, cols: usize) -> (Acts, Vec<f32>) {
    let x = random.numbers(rows * cols);
    let mut acts = Acts::default();
    acts.reset(rows, cols);
    x.chunks(cols).enumerate().for_each(|(row, x)| acts.set(row, x));
    (acts, x)
}

fn product(level: Level, weights: &Weights, acts: &Acts, act_rows: &[u32]) -> Vec<f32> {
    let packed = weights.pack(level, 0..weights.rows);
    let mut out = vec![f32::NAN; act_rows.len() * weights.rows];
    multiply(level, &packed, acts, act_rows, &mut Pane::new(&mut out, weights.rows));
    out
}

const SIZES: [(usize, usize); 7] = [(1, 32), (15, 31), (16, 64), (33, 100), (47, 256), (64, 1000), (80, 2080)];

#[test]
fn every_level_has_the_twins_bits() {
    let mut random = Random(1);
    for (group, most) in [(32, 15), (32, 127), (32, 255), (16, 63), (16, 255)] {
        for (rows, cols) in SIZES {
            let weights = Weights::new(&mut random, group, most, rows, cols);
            for count in [1usize, 2, 3, 4, 5, 6, 7, 13, 70] {
                let (acts, _) = acts(&mut random, count, cols);
                let act_rows: Vec<u32> = (0..count as u32).rev().collect();
                let want = product(Level::Portable, &weights, &acts, &act_rows);
                for level in levels() {
                    assert_same(&product(level, &weights, &acts, &act_rows), &want, &format!("{level:?} {rows}x{cols} g{group} {count}"));
                }
            }
        }
    }
}

#[test]
fn extremes_are_exact() {
    // The largest products that there are: bytes of 255 against 127.
    let mut random = Random(2);
    for group in [16, 32] {
        let mut weights = Weights::new(&mut random, group, 255, 17, 96);
        weights.values.fill(255);
        let mut acts = Acts::default();
        acts.reset(2, 96);
        acts.set(0, &[1.0; 96]);
        acts.set(1, &[-1.0; 96]);
        let want = product(Level::Portable, &weights, &acts, &[0, 1]);
        levels().for_each(|level| assert_same(&product(level, &weights, &acts, &[0, 1]), &want, "extremes"));
    }
}

#[test]
fn faults_stay_in_their_row() {
    let mut random = Random(3);
    let (rows, cols) = (40, 128);
    let mut weights = Weights::new(&mut random, 32, 15, rows, cols);
    weights.scales[..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let mut acts = Acts::default();
    acts.reset(9, cols);
    for row in 0..9 {
        let mut x = random.numbers(cols);
        x[77] = if row == 4 { f32::NAN } else { x[77] };
        acts.set(row, &x);
    }
    let act_rows: Vec<u32> = (0..9).collect();
    let want = product(Level::Portable, &weights, &acts, &act_rows);
    for (index, y) in want.iter().enumerate() {
        assert_eq!(y.is_finite(), index / rows != 4 && index % rows != 0, "number {index} is {y}");
    }
    levels().for_each(|level| assert_same(&product(level, &weights, &acts, &act_rows), &want, "faults"));
}

#[test]
fn the_twin_is_near_the_sum_in_f64() {
    let mut random = Random(4);
    for (group, most) in [(32, 15), (16, 255)] {
        let (rows, cols, count) = (37, 1000, 5);
        let weights = Weights::new(&mut random, group, most, rows, cols);
        let (acts, x) = acts(&mut random, count, cols);
        let got = product(Level::Portable, &weights, &acts, &[0, 1, 2, 3, 4]);
        for row in 0..rows {
            let w = weights.numbers(row);
            for (act, x) in x.chunks(cols).enumerate() {
                let terms = || w.iter().zip(x).map(|(w, x)| w * f64::from(*x));
                let size = w.iter().map(|w| w * w).sum::<f64>().sqrt();
                // An activation is off by at most half a 127th of the largest of its group, which is at most 1; errors add like noise.
                let off = (f64::from(got[act * rows + row]) - terms().sum::<f64>()).abs();
                assert!(off <= 6.0 * size / 254.0 / 3f64.sqrt(), "row {row} act {act}: off by {off}, rows of {size}");
            }
        }
    }
}

#[test]
fn cuts_change_no_bit() {
    let mut random = Random(5);
    let (rows, cols, count) = (100, 320, 70);
    let weights = Weights::new(&mut random, 16, 63, rows, cols);
    let (acts, _) = acts(&mut random, count, cols);
    let act_rows: Vec<u32> = (0..count as u32).collect();
    for level in levels().filter(|level| *level != Level::Portable) {
        let want = product(level, &weights, &acts, &act_rows);
        for _ in 0..20 {
            let (cut, act_cut) = (random.below(rows + 1), random.below(count + 1));
            let mut out = vec![f32::NAN; count * rows];
            for acts_range in [0..act_cut, act_cut..count].into_iter().filter(|range| !range.is_empty()) {
                let some = &mut out[acts_range.start * rows..acts_range.end * rows];
                let mut pane = Pane::new(some, rows);
                for range in [0..cut, cut..rows] {
                    let packed = weights.pack(level, range.clone());
                    multiply(level, &packed, &acts, &act_rows[acts_range.clone()], &mut pane.columns(range));
                }
            }
            assert_same(&out, &want, &format!("{level:?} cut at {cut}, {act_cut}"));
        }
    }
}

#[test]
fn panes_share_a_matrix() {
    let mut numbers = vec![0.0; 3 * 10];
    let panes: Vec<Pane<'_>> = Pane::new(&mut numbers, 10).split_every(4).collect();
    assert_eq!(panes.iter().map(Pane::cols).collect::<Vec<_>>(), [4, 4, 2]);
    std::thread::scope(|scope| {
        for (thread, mut pane) in panes.into_iter().enumerate() {
            scope.spawn(move || (0..pane.rows()).for_each(|row| pane.row_mut(row).fill((10 * row + thread) as f32)));
        }
    });
    let want: Vec<f32> = (0..30).map(|i| (i / 10 * 10 + i % 10 / 4) as f32).collect();
    assert_eq!(numbers, want);
    let mut pane = Pane::new(&mut numbers, 10);
    assert_eq!(pane.columns(3..5).row_mut(2), [20.0, 21.0]);
}

#[test]
#[should_panic(expected = "the size of a product")]
fn an_output_of_another_size_is_refused() {
    let mut random = Random(6);
    let weights = Weights::new(&mut random, 32, 15, STRIP, 64);
    let (acts, _) = acts(&mut random, 1, 64);
    multiply(Level::Portable, &weights.pack(Level::Portable, 0..STRIP), &acts, &[0], &mut Pane::new(&mut [0.0; 15], 15));
}
