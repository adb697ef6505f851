//! What `prepare` refuses.

use super::{Gather, GatherParams, Join};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using = Use { ins: vec![ids(3)], outs: vec![numbers(5)], weights: vec![(7, 5)], states: vec![] };
    for join in [Join::Sum, Join::Mean] {
        all_refused::<Gather>(
            &(GatherParams { join }, using.clone()),
            &[
                (|p, _| p.join = Join::Concat, "output 0: width is 5, expected 15"),
                (|_, u| u.ins[0] = numbers(3), "input 0: type F32, expected I32"),
                (|_, u| u.weights.clear(), "0 weights, expected 1"),
                (|_, u| u.weights[0] = (7, 6), "output 0: width is 5, expected 6"),
                (|_, u| u.outs[0] = ids(5), "output 0: type I32, expected F32"),
            ],
        );
    }
}
