//! CPU twin. Order: `z * scale`, rounded, then the base. A softmax subtracts the row's largest number, and one division by the sum of the
//! exponentials gives each share. Sums of rows and columns add in ascending order from 0, then eps; then one division each.

use super::MhcSplitParams;
use crate::contract::CpuCall;
use crate::ops::act::functions::sigmoid;

#[inline(always)]
pub(super) fn run(params: &MhcSplitParams, call: &mut CpuCall<'_>) {
    let n = params.streams as usize;
    let (scale, base) = (call.weight(0).decode(), call.weight(1).decode());
    for row in 0..call.rows.len() {
        let z = call.ins[0].row(row);
        let value = |index: usize, scale: f32| z[index] * scale + base[index];
        let [pre, post, comb] = &mut *call.outs else { unreachable!("three outputs were checked") };
        for (s, (pre, post)) in pre.row(row).iter_mut().zip(post.row(row)).enumerate() {
            *pre = sigmoid(value(s, scale[0])) + params.eps;
            *post = 2.0 * sigmoid(value(n + s, scale[1]));
        }
        let comb = comb.row(row);
        comb.iter_mut().enumerate().for_each(|(index, comb)| *comb = value(2 * n + index, scale[2]));
        balance(comb, n, params);
    }
}

fn balance(comb: &mut [f32], n: usize, params: &MhcSplitParams) {
    for row in comb.chunks_exact_mut(n) {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|share| *share = (*share - largest).exp());
        let sum = row.iter().fold(0.0, |sum, share| sum + share);
        row.iter_mut().for_each(|share| *share = *share / sum + params.eps);
    }
    divide_columns(comb, n, params.eps);
    for _ in 1..params.iterations {
        for row in comb.chunks_exact_mut(n) {
            let sum = row.iter().fold(0.0, |sum, share| sum + share) + params.eps;
            row.iter_mut().for_each(|share| *share /= sum);
        }
        divide_columns(comb, n, params.eps);
    }
}

fn divide_columns(comb: &mut [f32], n: usize, eps: f32) {
    for column in 0..n {
        let sum = comb.iter().skip(column).step_by(n).fold(0.0, |sum, share| sum + share) + eps;
        comb.iter_mut().skip(column).step_by(n).for_each(|share| *share /= sum);
    }
}
