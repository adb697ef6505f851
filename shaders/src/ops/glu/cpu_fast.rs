//! Fast mode: the CPU twin's formulas with the exponential of [`crate::fast::expf`].

use super::{GluKind, GluParams};
use crate::contract::{CpuCall, Fast};
use crate::fast::product::share_rows;
use crate::fast::{Level, expf};

/// `gate = glu(gate, up)`, number by number.
pub(crate) fn apply(level: Level, params: GluParams, gate: &mut [f32], up: &[f32]) {
    match params.kind {
        GluKind::Silu => expf::silu_glu(level, gate, up, f32::INFINITY),
        GluKind::SiluClamp => expf::silu_glu(level, gate, up, params.limit),
        _ => super::apply(params, gate, up),
    }
}

pub(super) fn run(params: GluParams, call: &mut CpuCall<'_>, fast: &Fast<'_>) {
    let (gate, up, rows) = (call.ins[0], call.ins[1], call.rows.len());
    let width = call.outs[0].width();
    let out: &mut [f32] = bytemuck::cast_slice_mut(call.outs[0].words(rows));
    share_rows(call.team, out, width, &|first, out, _| {
        for (row, y) in out.chunks_exact_mut(width).enumerate() {
            y.copy_from_slice(gate.row(first + row));
            apply(fast.level, params, y, up.row(first + row));
        }
    });
}
