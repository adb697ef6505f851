//! Fast mode: products as in [`crate::fast`], then the bias, then the function, as in the CPU twin.

use super::MatmulAct;
use super::cpu::apply_act;
use crate::contract::{CpuCall, Fast};
use crate::fast::Pane;
use crate::fast::product::{self, Operand};

/// `exact` keeps f32 activations.
pub(super) fn run(act: MatmulAct, exact: bool, call: &mut CpuCall<'_>, fast: &Fast<'_>) {
    let weight = call.weight(0);
    let bias = (call.weights.len() > 1).then(|| call.weight(1).decode());
    let (x, rows) = (call.ins[0], call.rows.len());
    let [acts, _] = &mut *fast.scratch.acts();
    let row = |row: usize| x.row(row);
    let formats = std::iter::once(weight.format()).filter(|_| !exact);
    let operand = Operand::new(call.team, formats, (rows, x.width()), &row, acts);
    let of: Vec<u32> = (0..rows as u32).collect();
    let pieces = product::pieces(fast.class, std::iter::once(weight.rows()), call.team.threads());
    let out: &mut [f32] = bytemuck::cast_slice_mut(call.outs[0].words(rows));
    let panes = product::panes(Pane::new(out, weight.rows()), pieces.iter().map(|(_, rows)| rows.clone()));
    product::share_panes(call.team, panes, &|index, mut pane, thread| {
        let own = &mut *fast.scratch.thread(thread);
        let cols = pieces[index].1.clone();
        let first = cols.start;
        product::product(fast, &weight, cols, operand, &of, own, &mut pane);
        if act != MatmulAct::None || bias.is_some() {
            for row in 0..rows {
                for (col, y) in pane.row_mut(row).iter_mut().enumerate() {
                    *y = apply_act(act, bias.as_ref().map_or(*y, |bias| *y + bias[first + col]));
                }
            }
        }
    });
}
