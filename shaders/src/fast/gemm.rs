//! Prompts: many rows of activations against packed rows of weights, by the order of "Prompts" in [`super`].
//!
//! [`Packed::pack`] decodes weight rows through their format's panel, once for all rows of activations, into strips of [`STRIP`] rows that
//! lie side by side: a word is four columns of one row, a unit the words of a strip. [`multiply`] takes tiles of a few rows of activations
//! by one or two strips and keeps their sums in registers. A number of the result depends on its own two rows alone, so work may be cut
//! anywhere.

use std::ops::Range;

use super::acts::{ActRow, Acts};
use super::gemm_pane::Pane;
use super::gemm_words::{self, Here};
use super::panel::PanelRow;
use super::{GROUP, Level, padded};
use crate::formats::WeightView;

#[cfg(target_arch = "x86_64")]
use super::{gemm_avx2, gemm_avx512};

/// Weight rows that lie side by side.
pub const STRIP: usize = 16;

/// Weight rows that [`gemm`] packs at a time: with 4096 columns they stay in a second-level cache.
pub const BLOCK: usize = 64;

/// A word of each row of a strip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Unit(pub(super) [u32; STRIP]);

impl Unit {
    /// Zeros.
    pub const ZERO: Self = Self([0; STRIP]);
}

/// Weight rows in the form that kernels read, and memory for making it, which is used again.
#[derive(Debug, Default)]
pub struct Packed {
    rows: usize,
    /// With the columns' padding.
    form: Form,
    /// Of each strip, of each four columns: the bytes.
    values: Vec<Unit>,
    /// Of each strip, of each group: the scales.
    scales: Vec<Unit>,
    /// Likewise the minimums.
    mins: Vec<Unit>,
    /// A strip's rows as the panel gives them.
    scratch: [Vec<u32>; 3],
}

/// What the panel of a row is like.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Form {
    pub cols: usize,
    /// Columns that share a scale.
    pub group: usize,
    /// The largest byte.
    pub most: u8,
}

/// A strip of [`Packed`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Strip<'a> {
    /// Bytes, four columns a unit.
    pub values: &'a [Unit],
    /// Scales, a group a unit.
    pub scales: &'a [Unit],
    /// Minimums, a group a unit.
    pub mins: &'a [Unit],
}

/// What a tile's kernel is given: one or two strips, and rows of activations of the same length. `sums[row * strips.len() + strip]`
/// becomes their products.
pub(super) struct Tile<'a> {
    pub here: Here,
    pub group: usize,
    pub most: u8,
    pub strips: &'a [Strip<'a>],
    pub acts: &'a [ActRow<'a>],
    pub sums: &'a mut [[f32; STRIP]],
}

/// Most rows of activations of a tile, and most strips.
const TILE: (usize, usize) = (8, 2);

impl Packed {
    /// Packs some rows of a matrix. What was packed is gone.
    ///
    /// # Panics
    /// When the matrix lacks the rows, its format has no panel, or the machine lacks the level.
    pub fn pack(&mut self, level: Level, w: &WeightView<'_>, rows: Range<usize>) {
        let panel = w.format().panel().unwrap_or_else(|| panic!("{:?} has no panel", w.format()));
        assert!(rows.start <= rows.end && rows.end <= w.rows(), "rows {rows:?} of {}", w.rows());
        let of = Form { cols: w.cols(), group: panel.group, most: panel.most };
        self.pack_by(level, of, rows.len(), |row, to| {
            let (values, scales) = w.row(rows.start + row);
            (panel.decode_at)(level, values, scales, to);
        });
    }

    /// Packs `rows` rows, which `decode` knows.
    pub(super) fn pack_by(&mut self, level: Level, of: Form, rows: usize, mut decode: impl FnMut(usize, &mut PanelRow<'_>)) {
        let here = Here::new(level);
        assert!([GROUP / 2, GROUP].contains(&of.group), "groups of {}", of.group);
        let cols = padded(of.cols);
        let (words, groups) = (cols / 4, cols / of.group);
        // Rows a power of two apart would share few sets of a cache.
        let (pitch, group_pitch) = (words + STRIP, groups + STRIP);
        (self.rows, self.form) = (rows, Form { cols, ..of });
        for (units, of) in [(&mut self.values, words), (&mut self.scales, groups), (&mut self.mins, groups)] {
            units.resize(rows.div_ceil(STRIP) * of, Unit::ZERO);
        }
        let [values, scales, mins] = &mut self.scratch;
        values.resize(STRIP * pitch, 0);
        scales.resize(STRIP * group_pitch, 0);
        mins.resize(STRIP * group_pitch, 0);
        for (strip, first) in (0..rows).step_by(STRIP).enumerate() {
            let count = STRIP.min(rows - first);
            for row in 0..count {
                let mut to = PanelRow {
                    values: bytemuck::cast_slice_mut(&mut values[row * pitch..][..words]),
                    scales: bytemuck::cast_slice_mut(&mut scales[row * group_pitch..][..groups]),
                    mins: bytemuck::cast_slice_mut(&mut mins[row * group_pitch..][..groups]),
                };
                decode(first + row, &mut to);
            }
            // A strip that is not full ends in rows of zeros.
            values[count * pitch..].fill(0);
            scales[count * group_pitch..].fill(0);
            mins[count * group_pitch..].fill(0);
            gemm_words::interleave(here, values, pitch, &mut self.values[strip * words..][..words]);
            gemm_words::interleave(here, scales, group_pitch, &mut self.scales[strip * groups..][..groups]);
            gemm_words::interleave(here, mins, group_pitch, &mut self.mins[strip * groups..][..groups]);
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn strip(&self, strip: usize) -> Strip<'_> {
        let (words, groups) = (self.form.cols / 4, self.form.cols / self.form.group);
        Strip {
            values: &self.values[strip * words..][..words],
            scales: &self.scales[strip * groups..][..groups],
            mins: &self.mins[strip * groups..][..groups],
        }
    }
}

/// Row `i` of `out` becomes row `act_rows[i]` of the activations times the packed rows.
///
/// # Panics
/// When `out` has other rows than `act_rows` or other columns than there are packed rows, when there are no such activations or they have
/// another length, or when the machine lacks the level.
pub fn multiply(level: Level, packed: &Packed, acts: &Acts, act_rows: &[u32], out: &mut Pane<'_>) {
    let here = Here::new(level);
    assert_eq!((out.rows(), out.cols()), (act_rows.len(), packed.rows), "the size of a product");
    let (rows, strips, kernel): (_, _, fn(Tile<'_>)) = match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => (gemm_avx512::ROWS, gemm_avx512::STRIPS, gemm_avx512::tile),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => (gemm_avx2::ROWS, gemm_avx2::STRIPS, gemm_avx2::tile),
        _ => (1, 1, portable),
    };
    let mut sums = [[0.0; STRIP]; TILE.0 * TILE.1];
    let all: Vec<Strip<'_>> = (0..packed.rows.div_ceil(STRIP)).map(|strip| packed.strip(strip)).collect();
    for (tile, act_rows) in act_rows.chunks(rows).enumerate() {
        let mut of = [acts.row(act_rows[0] as usize); TILE.0];
        of.iter_mut().zip(act_rows).for_each(|(of, row)| *of = acts.row(*row as usize));
        let of = &of[..act_rows.len()];
        assert!(of.iter().all(|act| act.q.len() == packed.form.cols), "activations of {} numbers", packed.form.cols);
        for (pair, some) in all.chunks(strips).enumerate() {
            let sums = &mut sums[..of.len() * some.len()];
            kernel(Tile { here, group: packed.form.group, most: packed.form.most, strips: some, acts: of, sums: &mut *sums });
            let first = pair * strips * STRIP;
            let cols = first..packed.rows.min(first + some.len() * STRIP);
            for (row, sums) in sums.chunks_exact(some.len()).enumerate() {
                let to = &mut out.row_mut(tile * rows + row)[cols.clone()];
                to.copy_from_slice(&sums.as_flattened()[..to.len()]);
            }
        }
    }
}

/// Row `i` of `out` becomes row `act_rows[i]` of the activations times some rows of a matrix, which are packed a block at a time.
///
/// # Panics
/// As [`Packed::pack`] and [`multiply`] do.
pub fn gemm(level: Level, w: &WeightView<'_>, rows: Range<usize>, acts: &Acts, act_rows: &[u32], packed: &mut Packed, out: &mut Pane<'_>) {
    assert_eq!(out.cols(), rows.len(), "columns of a product");
    for first in rows.clone().step_by(BLOCK) {
        let block = first..rows.end.min(first + BLOCK);
        packed.pack(level, w, block.clone());
        multiply(level, packed, acts, act_rows, &mut out.columns(block.start - rows.start..block.end - rows.start));
    }
}

/// The scalar twin of every other kernel: one row, one strip.
fn portable(tile: Tile<'_>) {
    let Tile { group, strips: [strip], acts: [act], sums: [y], .. } = tile else { unreachable!("a tile of one row and one strip") };
    let sums = if group == GROUP { act.sums } else { act.halves };
    y.fill(0.0);
    for (g, q) in act.q.chunks_exact(group).enumerate() {
        let mut dots = [0i32; STRIP];
        for (unit, q) in strip.values[g * group / 4..].iter().zip(q.as_chunks::<4>().0) {
            for (dot, word) in dots.iter_mut().zip(unit.0) {
                *dot += word.to_le_bytes().iter().zip(q).map(|(u, q)| i32::from(*u) * i32::from(*q)).sum::<i32>();
            }
        }
        let (a, t) = (act.scales[g * group / GROUP], sums[g]);
        for ((y, dot), (s, m)) in y.iter_mut().zip(dots).zip(strip.scales[g].0.iter().zip(strip.mins[g].0)) {
            *y = (dot as f32).mul_add(f32::from_bits(*s) * a, *y);
            *y = (-f32::from_bits(m)).mul_add(t, *y);
        }
    }
}
