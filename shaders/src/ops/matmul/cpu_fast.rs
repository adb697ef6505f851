//! Fast mode: products as in [`crate::fast`], then the bias, then the function, as in the CPU twin.

use super::MatmulAct;
use super::cpu::apply_act;
use crate::contract::{CpuCall, Fast};
use crate::fast::Pane;
use crate::fast::product::{self, Operand};

pub(super) fn run(act: MatmulAct, call: &mut CpuCall<'_>, fast: &Fast<'_>) {
    let weight = call.weight(0);
    let bias = (call.weights.len() > 1).then(|| call.weight(1).decode());
    let (x, rows) = (call.ins[0], call.rows.len());
    let ([acts, _], [flat, ..]) = (&mut *fast.scratch.acts(), &mut *fast.scratch.numbers());
    product::load(call.team, [weight.format()].into_iter(), (rows, x.width()), &|row| x.row(row), acts, flat);
    let operand = Operand { acts, rows: flat };
    let of: Vec<u32> = (0..rows as u32).collect();
    let each = product::piece(fast.class, weight.rows(), call.team.threads());
    let out: &mut [f32] = bytemuck::cast_slice_mut(call.outs[0].words(rows));
    let panes = Pane::new(out, weight.rows()).split_every(each);
    product::share_panes(call.team, panes, &|index, mut pane, thread| {
        let first = index * each;
        let own = &mut *fast.scratch.thread(thread);
        let cols = first..first + pane.cols();
        product::product(fast, &weight, cols.clone(), operand, &of, own, &mut pane);
        if act != MatmulAct::None || bias.is_some() {
            for row in 0..rows {
                for (col, y) in pane.row_mut(row).iter_mut().enumerate() {
                    *y = apply_act(act, bias.as_ref().map_or(*y, |bias| *y + bias[first + col]));
                }
            }
        }
    });
}
