//! What `prepare` refuses.

use coli_plugin_api::program::Domain;

use super::{Spread, SpreadParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let plain = Use { ins: vec![numbers(12), numbers(3), numbers(4)], outs: vec![numbers(12)], weights: vec![], states: vec![] };
    let mixed = Use { ins: vec![numbers(12), numbers(3), numbers(4), numbers(16)], ..plain.clone() };
    all_refused::<Spread>(
        &(SpreadParams { streams: 4 }, plain),
        &[
            (|p, _| p.streams = 0, "parameter `streams`: 0 is outside 1..=1024"),
            (|p, _| p.streams = 5, "parameter `streams`: 5 does not divide a width of 12"),
            (|p, _| p.streams = 3, "input 1: width is 3, expected 4"),
            (|_, u| u.ins[2].2 = 3, "input 2: width is 3, expected 4"),
            (|_, u| u.ins[1] = ids(3), "input 1: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 3, "output 0: width is 3, expected 12"),
            (|_, u| u.outs[0].0 = Domain::Outs, "operands of two domains"),
            (|_, u| drop(u.ins.pop()), "2 inputs, expected 3 to 4"),
        ],
    );
    all_refused::<Spread>(
        &(SpreadParams { streams: 4 }, mixed),
        &[
            (|_, u| u.ins[3].2 = 4, "input 3: width is 4, expected 16"),
            (|_, u| u.ins[3] = ids(16), "input 3: type I32, expected F32"),
            (|_, u| u.ins.push(numbers(16)), "5 inputs, expected 3 to 4"),
        ],
    );
}
