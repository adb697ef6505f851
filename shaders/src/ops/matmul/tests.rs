//! What `prepare` refuses.

use super::{Matmul, MatmulAct, MatmulParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using = Use { ins: vec![numbers(5)], outs: vec![numbers(6)], weights: vec![(6, 5), (1, 6)], states: vec![] };
    all_refused::<Matmul>(
        &(MatmulParams { act: MatmulAct::Gelu, exact: false }, using),
        &[
            (|_, u| u.weights[0] = (6, 4), "weight 0 is 6x4, expected 6x5"),
            (|_, u| u.weights[1] = (1, 5), "weight 1 is 1x5, expected 1x6"),
            (|_, u| u.weights[1] = (6, 1), "weight 1 is 6x1, expected 1x6"),
            (|_, u| u.weights.push((1, 6)), "3 weights, expected 1 to 2"),
            (|_, u| u.weights.clear(), "0 weights, expected 1 to 2"),
            (|_, u| u.ins[0] = ids(5), "input 0: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 5, "output 0: width is 5, expected 6"),
        ],
    );
}
