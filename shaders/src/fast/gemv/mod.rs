//! Products of a few rows of int8 activations with rows of weights: the kernels of single tokens.
//!
//! The bits of a result are those of the signature for steps in [`super`], padded with zeros to whole units of 256 columns, whatever
//! kernel ran and however many rows of activations shared it.
//!
//! Kernels: a format's own in registers; the panel kernel of a level, which decodes a row into memory that stays in the first cache; and
//! the portable one, which is the twin of all.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod driver;
mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod registers;
#[cfg(test)]
pub(crate) mod tests;

pub(super) use portable::tree;

use std::ops::Range;

use super::acts::UNIT;
use super::panel::{Gemv, Panel, PanelRow};
use super::{Acts, Level};
use crate::formats::{Format, WeightView};

/// A kernel that [`gemv`] can take.
#[derive(Clone, Copy)]
enum Kernel {
    /// In registers.
    Direct(Gemv),
    /// From a panel of one row.
    Panel(Level),
}

/// The products of rows `act_rows` of `acts` with rows `rows` of `w`: `out` has, for each row of activations, the products with all rows
/// of the range, one after the other.
///
/// # Panics
/// When the machine lacks the level, the format has no panel, a range is not inside its rows, or sizes differ.
pub fn gemv(level: Level, w: &WeightView<'_>, rows: Range<usize>, acts: &Acts, act_rows: Range<usize>, out: &mut [f32]) {
    assert!(level.is_here(), "{level:?} is not here");
    assert!(rows.start <= rows.end && rows.end <= w.rows(), "rows {rows:?} of {}", w.rows());
    assert!(act_rows.start <= act_rows.end && act_rows.end <= acts.rows(), "rows {act_rows:?} of {}", acts.rows());
    assert_eq!((acts.cols(), out.len()), (w.cols(), rows.len() * act_rows.len()), "columns, and numbers of the result");
    let Some(panel) = w.format().panel() else { panic!("{:?} has no panel", w.format()) };
    match kernel(panel, level) {
        Kernel::Direct(kernel) => kernel(w, rows, acts, act_rows, out),
        Kernel::Panel(level) => by_panel(level, panel, w, rows, acts, act_rows, out),
    }
}

/// The name of the kernel that [`gemv`] takes for a format.
pub fn kernel_of(format: Format, level: Level) -> Option<&'static str> {
    Some(match (kernel(format.panel()?, level), level) {
        (Kernel::Direct(_), Level::Avx512) => "direct-avx512",
        (Kernel::Direct(_), _) => "direct-avx2",
        (Kernel::Panel(Level::Avx512), _) => "panel-avx512",
        (Kernel::Panel(Level::Avx2), _) => "panel-avx2",
        (Kernel::Panel(Level::Portable), _) => "portable",
    })
}

fn kernel(panel: &Panel, level: Level) -> Kernel {
    let direct = match level {
        Level::Portable => None,
        Level::Avx2 => panel.direct.avx2,
        Level::Avx512 => panel.direct.avx512,
    };
    direct.map_or(Kernel::Panel(level), Kernel::Direct)
}

/// Decodes two rows at a time.
fn by_panel(level: Level, panel: &Panel, w: &WeightView<'_>, rows: Range<usize>, acts: &Acts, act_rows: Range<usize>, out: &mut [f32]) {
    let units = w.cols().div_ceil(UNIT);
    let mut memory = Memory::new(units, units * UNIT / panel.group);
    let (start, count) = (rows.start, rows.len());
    let mut products = vec![0.0; 2 * act_rows.len()];
    for first in rows.clone().step_by(2) {
        let some = 2.min(rows.end - first);
        for (index, row) in (first..first + some).enumerate() {
            let (values, scales) = w.row(row);
            (panel.decode_at)(level, values, scales, &mut memory.row(index));
        }
        let products = &mut products[..some * act_rows.len()];
        memory.products(level, panel, some, acts, act_rows.clone(), products);
        for (products, out) in products.chunks_exact(some).zip(out.chunks_exact_mut(count)) {
            out[first - start..][..some].copy_from_slice(products);
        }
    }
}

/// A panel of two rows.
struct Memory {
    units: usize,
    groups: usize,
    values: Vec<[u8; UNIT]>,
    scales: Vec<f32>,
    mins: Vec<f32>,
    /// For each unit its scales, then its minimums.
    both: Vec<f32>,
}

impl Memory {
    /// Of rows of so many units and groups.
    fn new(units: usize, groups: usize) -> Self {
        let numbers = || vec![0.0; 2 * groups];
        Self { units, groups, values: vec![[0; UNIT]; 2 * units], scales: numbers(), mins: numbers(), both: vec![0.0; 4 * groups] }
    }

    fn row(&mut self, row: usize) -> PanelRow<'_> {
        PanelRow {
            values: self.values[row * self.units..][..self.units].as_flattened_mut(),
            scales: &mut self.scales[row * self.groups..][..self.groups],
            mins: &mut self.mins[row * self.groups..][..self.groups],
        }
    }

    /// The products of the first `rows` rows.
    fn products(&mut self, level: Level, panel: &Panel, rows: usize, acts: &Acts, act_rows: Range<usize>, out: &mut [f32]) {
        if level == Level::Portable {
            for (act, out) in act_rows.zip(out.chunks_exact_mut(rows)) {
                for (row, out) in out.iter_mut().enumerate() {
                    let values = &self.values[row * self.units..][..self.units];
                    let of = |numbers| &<Vec<f32>>::as_slice(numbers)[row * self.groups..][..self.groups];
                    *out = portable::dot(portable::Units { values, scales: of(&self.scales), mins: of(&self.mins) }, acts.units(act));
                }
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        self.in_registers(level, panel, rows, acts, act_rows, out);
    }

    #[cfg(target_arch = "x86_64")]
    fn in_registers(&mut self, level: Level, panel: &Panel, rows: usize, acts: &Acts, act_rows: Range<usize>, out: &mut [f32]) {
        let groups = UNIT / panel.group;
        let from = self.scales.chunks_exact(groups).zip(self.mins.chunks_exact(groups));
        for (both, (scales, mins)) in self.both.chunks_exact_mut(2 * groups).zip(from) {
            both[..groups].copy_from_slice(scales);
            both[groups..].copy_from_slice(mins);
        }
        let values = self.values[..rows * self.units].as_flattened();
        let scales = bytemuck::cast_slice(&self.both[..2 * rows * self.groups]);
        registers::of_panel(level, panel, (values, scales), rows, acts, act_rows, out);
    }
}
