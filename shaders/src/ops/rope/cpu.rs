//! CPU twin. Order: two rounded products and one rounded sum for each number.

use super::angles::Angles;
use super::{RopeParams, RopeStyle};
use crate::contract::CpuCall;

#[inline(always)]
pub(super) fn run(params: &RopeParams, angles: &Angles, call: &mut CpuCall<'_>) {
    let (head_width, start, pairs) = (params.head_width as usize, params.start as usize, angles.pairs());
    let columns = |pair: usize| match params.style {
        RopeStyle::Half => (start + pair, start + pair + pairs),
        RopeStyle::Pair => (start + 2 * pair, start + 2 * pair + 1),
    };
    let (x, rpos) = (call.ins[0], call.ins[1]);
    for row in 0..call.rows.len() {
        let y = call.outs[0].row(row);
        y.copy_from_slice(x.row(row));
        for (pair, (cos, sin)) in angles.at(rpos.ints(row)[0]).enumerate() {
            let (first, second) = columns(pair);
            for head in y.chunks_exact_mut(head_width) {
                let (u, v) = (head[first], head[second]);
                head[first] = u * cos - v * sin;
                head[second] = v * cos + u * sin;
            }
        }
    }
}
