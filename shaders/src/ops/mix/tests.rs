//! What `prepare` refuses.

use coli_plugin_api::program::Domain;

use super::{Mix, MixParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let mean = Use { ins: vec![numbers(12)], outs: vec![numbers(3)], weights: vec![], states: vec![] };
    let weighted = Use { ins: vec![numbers(12), numbers(4)], ..mean.clone() };
    all_refused::<Mix>(
        &(MixParams { streams: 4 }, mean),
        &[
            (|p, _| p.streams = 0, "parameter `streams`: 0 is outside 1..=1024"),
            (|p, _| p.streams = 5, "parameter `streams`: 5 does not divide a width of 12"),
            (|p, _| p.streams = 3, "output 0: width is 3, expected 4"),
            (|_, u| u.ins[0] = ids(12), "input 0: type I32, expected F32"),
            (|_, u| u.outs[0] = ids(3), "output 0: type I32, expected F32"),
            (|_, u| u.outs[0].0 = Domain::Outs, "operands of two domains"),
            (|_, u| u.ins.clear(), "0 inputs, expected 1 to 2"),
        ],
    );
    all_refused::<Mix>(
        &(MixParams { streams: 4 }, weighted),
        &[
            (|_, u| u.ins[1].2 = 3, "input 1: width is 3, expected 4"),
            (|_, u| u.ins[1] = ids(4), "input 1: type I32, expected F32"),
            (|_, u| u.ins.push(numbers(4)), "3 inputs, expected 1 to 2"),
        ],
    );
}
