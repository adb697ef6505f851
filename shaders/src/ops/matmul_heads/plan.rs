//! Device form: the kernels of `matmul`, where outputs of a group read its columns, and one down the columns of a group's matrix.

use super::MatmulHeadsParams;
use crate::device::{Arg, KernelText, Plan, PlanCall};
use crate::ops::matmul::product::{GEMM, GEMM_MATRIX, GEMV, GEMV_T, Product};

pub(super) const KERNELS: &[KernelText] = &[GEMV, GEMV_T, GEMM, GEMM_MATRIX];

pub(super) fn plan(params: &MatmulHeadsParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let matrix = call.weights[0];
    let product =
        Product { group_outs: matrix.rows / params.groups, ..Product::new(matrix, vec![Arg::In(0)], vec![Arg::Out(0)], Arg::Matrix(0)) };
    Ok(Plan::one(if params.transpose { product.gemv_t(call)? } else { product.dispatch(call, false)? }))
}
