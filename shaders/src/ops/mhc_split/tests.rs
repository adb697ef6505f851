//! What `prepare` refuses.

use coli_plugin_api::program::Domain;

use super::{MhcSplit, MhcSplitParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using =
        Use { ins: vec![numbers(24)], outs: vec![numbers(4), numbers(4), numbers(16)], weights: vec![(1, 3), (1, 24)], states: vec![] };
    all_refused::<MhcSplit>(
        &(MhcSplitParams { streams: 4, eps: 1e-6, iterations: 20 }, using),
        &[
            (|p, _| p.streams = 0, "parameter `streams`: 0 is outside 1..=64"),
            (|p, _| p.streams = u32::MAX, "parameter `streams`: 4294967295 is outside"),
            (|p, _| p.streams = 3, "input 0: width is 24, expected 15"),
            (|p, _| p.eps = -1.0, "parameter `eps`: -1 is outside 0"),
            (|p, _| p.iterations = 0, "parameter `iterations`: 0 is outside 1..=1000"),
            (|p, _| p.iterations = 1001, "parameter `iterations`: 1001 is outside 1..=1000"),
            (|_, u| u.ins[0] = ids(24), "input 0: type I32, expected F32"),
            (|_, u| u.weights[0] = (1, 2), "weight 0 is 1x2, expected 1x3"),
            (|_, u| u.weights[1] = (24, 1), "weight 1 is 24x1, expected 1x24"),
            (|_, u| u.weights.truncate(1), "1 weights, expected 2"),
            (|_, u| u.outs[0].2 = 3, "output 0: width is 3, expected 4"),
            (|_, u| u.outs[1].2 = 3, "output 1: width is 3, expected 4"),
            (|_, u| u.outs[2].2 = 4, "output 2: width is 4, expected 16"),
            (|_, u| u.outs[2].0 = Domain::Outs, "operands of two domains"),
            (|_, u| drop(u.outs.pop()), "2 outputs, expected 3"),
        ],
    );
}
