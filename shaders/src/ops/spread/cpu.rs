//! CPU twin. Order: `b_s * y`, then the streams' products in the order of r, each rounded before it is added.

use crate::contract::CpuCall;
use crate::ops::mix;

pub(super) fn run(streams: usize, call: &mut CpuCall<'_>) {
    let (h, y, b, comb) = (call.ins[0], call.ins[1], call.ins[2], call.ins.get(3));
    let width = y.width();
    for row in 0..call.rows.len() {
        let (old, y, b) = (h.row(row), y.row(row), b.row(row));
        for (s, new) in call.outs[0].row(row).chunks_exact_mut(width).enumerate() {
            new.iter_mut().zip(y).for_each(|(new, y)| *new = b[s] * y);
            match comb {
                Some(comb) => {
                    let shares = comb.row(row).iter().skip(s).step_by(streams);
                    old.chunks_exact(width).zip(shares).for_each(|(old, share)| mix::add(new, *share, old));
                }
                None => new.iter_mut().zip(&old[s * width..]).for_each(|(new, old)| *new += old),
            }
        }
    }
}
