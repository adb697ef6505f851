//! What `prepare` refuses.

use coli_plugin_api::program::Domain;

use super::{MatmulHeads, MatmulHeadsParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let plain = Use { ins: vec![numbers(10)], outs: vec![numbers(6)], weights: vec![(6, 5)], states: vec![] };
    let transposed = Use { ins: vec![numbers(6)], outs: vec![numbers(10)], ..plain.clone() };
    all_refused::<MatmulHeads>(
        &(MatmulHeadsParams { groups: 2, transpose: false }, plain),
        &[
            (|p, _| p.groups = 0, "parameter `groups`: 0 is outside 1..=1048576"),
            (|p, _| p.groups = 4, "weight 0 is 6x5, expected rows for 4 groups"),
            (|p, _| p.groups = 3, "input 0: width is 10, expected 15"),
            (|p, _| p.transpose = true, "input 0: width is 10, expected 6"),
            (|_, u| u.weights[0] = (0, 5), "weight 0 is 0x5, expected rows for 2 groups"),
            (|_, u| u.weights[0] = (6, 0), "weight 0 is 6x0, expected rows for 2 groups"),
            (|_, u| u.weights[0] = (6, u32::MAX), "input 0: width is 10, expected 8589934590"),
            (|_, u| u.weights.clear(), "0 weights, expected 1"),
            (|_, u| u.ins[0] = ids(10), "input 0: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 5, "output 0: width is 5, expected 6"),
            (|_, u| u.outs[0].0 = Domain::Outs, "operands of two domains"),
        ],
    );
    all_refused::<MatmulHeads>(
        &(MatmulHeadsParams { groups: 2, transpose: true }, transposed),
        &[(|p, _| p.transpose = false, "input 0: width is 6, expected 10"), (|_, u| u.outs[0].2 = 5, "output 0: width is 5, expected 10")],
    );
}
