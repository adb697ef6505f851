//! Device form: inner products in the order of the CPU twin; tiles for prompts in fast mode.

use super::Matmul;
use super::product::{GEMM, GEMM_MATRIX, GEMV, Product};
use crate::device::{Arg, KernelText, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[GEMV, GEMM, GEMM_MATRIX];

pub(super) fn plan(op: &Matmul, call: &PlanCall<'_>) -> Result<Plan, String> {
    let product = Product {
        act: op.act as u32,
        bias: (call.weights.len() > 1).then_some(Arg::Vector(1)),
        ..Product::new(call.weights[0], vec![Arg::In(0)], vec![Arg::Out(0)], Arg::Matrix(0))
    };
    Ok(Plan::one(product.dispatch(call, op.exact)?))
}
