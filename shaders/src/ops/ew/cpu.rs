//! CPU twin. No sums over columns; a product is rounded before it is added, and so is `1 + b`.

use super::{EwKind, EwParams, EwRepeat};
use crate::contract::CpuCall;
use crate::ops::act::functions::{sigmoid, silu};

#[inline(always)]
pub(super) fn run(params: &EwParams, call: &mut CpuCall<'_>) {
    let s = params.scale;
    match params.kind {
        EwKind::Add => each(params, call, |a, b, _| a + s * b),
        EwKind::Mul => each(params, call, |a, b, _| a * b),
        EwKind::MulSigmoid => each(params, call, |a, b, _| a * sigmoid(b)),
        EwKind::MulSilu => each(params, call, |a, b, _| a * silu(b)),
        EwKind::Modulate => each(params, call, |a, b, c| a * (1.0 + b) + c),
        EwKind::Distance => each(params, call, |a, b, _| (a - b).abs()),
    }
}

/// `y = f(a, b, c)`, with b in c's place where there is no c.
fn each(params: &EwParams, call: &mut CpuCall<'_>, f: impl Fn(f32, f32, f32) -> f32) {
    let (a, b, c) = (call.ins[0], call.ins[1], *call.ins.last().unwrap_or(&call.ins[1]));
    let group = a.width() / params.groups as usize;
    let at = |column: usize| match params.repeat {
        EwRepeat::None => column,
        EwRepeat::Group => column / group,
        EwRepeat::Column => column % group,
    };
    for row in 0..call.rows.len() {
        let (b, c) = (b.row(row), c.row(row));
        let numbers = call.outs[0].row(row).iter_mut().zip(a.row(row)).enumerate();
        numbers.for_each(|(column, (y, a))| *y = f(*a, b[at(column)], c[at(column)]));
    }
}
