//! CPU twin. No sums over columns: `(scale * x + w) + add`, each step rounded, then the function (see [`functions`]).

use super::{ActKind, ActParams, functions};
use crate::contract::CpuCall;

#[inline(always)]
pub(super) fn run(params: &ActParams, call: &mut CpuCall<'_>) {
    call.scratch.clear();
    if !call.weights.is_empty() {
        let weight = call.weight(0);
        call.scratch.resize(weight.cols(), 0.0);
        weight.decode_row(0, call.scratch);
    }
    let f = function(params);
    for row in 0..call.rows.len() {
        let y = call.outs[0].row(row);
        y.iter_mut().zip(call.ins[0].row(row)).for_each(|(y, x)| *y = params.scale * x);
        y.iter_mut().zip(&*call.scratch).for_each(|(y, w)| *y += w);
        y.iter_mut().for_each(|y| *y = f(*y + params.add));
    }
}

fn function(params: &ActParams) -> Box<dyn Fn(f32) -> f32> {
    let limit = params.limit;
    match params.kind {
        ActKind::Linear => Box::new(|x| x),
        ActKind::Silu => Box::new(functions::silu),
        ActKind::Sigmoid => Box::new(functions::sigmoid),
        ActKind::Gelu => Box::new(functions::gelu),
        ActKind::GeluTanh => Box::new(functions::gelu_tanh),
        ActKind::Relu => Box::new(functions::relu),
        ActKind::Tanh => Box::new(f32::tanh),
        ActKind::Exp => Box::new(f32::exp),
        ActKind::SqrtSoftplus => Box::new(functions::sqrt_softplus),
        ActKind::SignsqrtSigmoid => Box::new(functions::signsqrt_sigmoid),
        ActKind::Clamp => Box::new(move |x| x.clamp(-limit, limit)),
    }
}
