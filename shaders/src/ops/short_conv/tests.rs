//! What `prepare` refuses.

use coli_plugin_api::describe::{Keep, StateKind};
use coli_plugin_api::program::{Access, Domain, Ty};

use super::{ShortConv, ShortConvParams};
use crate::ops::refusals::{Use, all_refused, numbers, rows};

fn valid() -> (ShortConvParams, Use) {
    let states = vec![(rows(&[6], 1, Keep::Last(9)), Access::Append)];
    let using = Use { ins: vec![numbers(6)], outs: vec![numbers(6)], weights: vec![(6, 4)], states };
    (ShortConvParams { dilation: 3, ..ShortConvParams::silu(4) }, using)
}

#[test]
fn whatever_does_not_fit_is_refused() {
    all_refused::<ShortConv>(
        &valid(),
        &[
            (|p, _| p.taps = 0, "parameter `taps`: 0 is outside 1..=1024"),
            (|p, _| p.taps = u32::MAX, "parameter `taps`: 4294967295 is outside 1..=1024"),
            (|p, _| p.dilation = 0, "parameter `dilation`: 0 is outside 1..=65536"),
            (|p, _| p.dilation = 65_537, "parameter `dilation`: 65537 is outside"),
            (|p, _| p.taps = 5, "weight 0 is 6x4, expected 6x5"),
            (|p, _| p.dilation = 4, "state 0: keeps the last 9, expected at least 12"),
            (|p, _| p.dilation = 65_536, "state 0: keeps the last 9, expected at least 196608"),
            (|_, u| u.ins.push(numbers(6)), "2 inputs, expected 1"),
            (|_, u| u.ins[0].1 = Ty::I32, "input 0: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 5, "output 0: width is 5, expected 6"),
            (|_, u| u.outs[0].0 = Domain::Outs, "operands of two domains"),
            (|_, u| u.weights.clear(), "0 weights, expected 1"),
            (|_, u| u.weights[0] = (4, 6), "weight 0 is 4x6, expected 6x4"),
            (|_, u| u.states.clear(), "0 states, expected 1"),
            (|_, u| u.states[0].1 = Access::Read, "state 0: access Read, expected Append"),
            (|_, u| u.states[0].0 = StateKind::Accumulator { shape: vec![6] }, "state 0: an accumulator, expected rows"),
            (|_, u| u.states[0].0 = rows(&[3, 3], 1, Keep::Last(9)), "state 0: parts of [3, 3], expected [6]"),
            (|_, u| u.states[0].0 = rows(&[6], 3, Keep::Last(9)), "state 0: stride is 3, expected 1"),
            (|_, u| u.states[0].0 = rows(&[6], 1, Keep::Last(8)), "state 0: keeps the last 8, expected at least 9"),
        ],
    );
}

#[test]
fn a_state_may_keep_more() {
    for keep in [Keep::Last(10), Keep::All] {
        let (params, mut using) = valid();
        using.states[0].0 = rows(&[6], 1, keep);
        assert_eq!(using.prepare::<ShortConv>(&params), Ok(()));
    }
}
