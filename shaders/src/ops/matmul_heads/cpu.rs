//! CPU twin. Order: each output is one inner product as in [`crate::sums`], over the columns of its matrix, or over its rows when it is
//! transposed. Weights are decoded once for all rows of the step, which changes no bit.

use crate::contract::CpuCall;
use crate::sums;

pub(super) fn plain(groups: usize, call: &mut CpuCall<'_>) {
    let weight = call.weight(0);
    let (outs, cols) = (weight.rows() / groups, weight.cols());
    call.scratch.resize(cols, 0.0);
    for out in 0..weight.rows() {
        weight.decode_row(out, call.scratch);
        let first = out / outs * cols;
        for row in 0..call.rows.len() {
            call.outs[0].row(row)[out] = sums::dot(call.scratch, &call.ins[0].row(row)[first..first + cols]);
        }
    }
}

pub(super) fn transposed(groups: usize, call: &mut CpuCall<'_>) {
    let weight = call.weight(0);
    let (outs, cols) = (weight.rows() / groups, weight.cols());
    // A row of the matrix, then the columns of the matrix one after another.
    call.scratch.resize(cols + outs * cols, 0.0);
    for group in 0..groups {
        let (decoded, columns) = call.scratch.split_at_mut(cols);
        for out in 0..outs {
            weight.decode_row(group * outs + out, decoded);
            decoded.iter().zip(columns.iter_mut().skip(out).step_by(outs)).for_each(|(number, at)| *at = *number);
        }
        for row in 0..call.rows.len() {
            let x = &call.ins[0].row(row)[group * outs..][..outs];
            let y = &mut call.outs[0].row(row)[group * cols..][..cols];
            y.iter_mut().zip(columns.chunks_exact(outs)).for_each(|(y, column)| *y = sums::dot(column, x));
        }
    }
}
