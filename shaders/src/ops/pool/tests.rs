//! What `prepare` refuses.

use coli_plugin_api::describe::{Keep, StateKind};
use coli_plugin_api::program::{Access, Domain, Ty};

use super::{Pool, PoolMode, PoolParams};
use crate::ops::refusals::{Use, all_refused, numbers, rows};

fn valid() -> (PoolParams, Use) {
    let using = Use {
        ins: vec![numbers(6), numbers(6)],
        outs: vec![numbers(3)],
        weights: vec![(4, 6)],
        states: vec![(rows(&[6, 6], 1, Keep::Last(7)), Access::Append)],
    };
    (PoolParams::softmax(4, true), using)
}

fn mean() -> (PoolParams, Use) {
    let states = vec![(rows(&[6], 1, Keep::Last(3)), Access::Append)];
    (PoolParams::mean(4), Use { ins: vec![numbers(6)], outs: vec![numbers(6)], weights: vec![], states })
}

#[test]
fn whatever_does_not_fit_is_refused() {
    fn odd(using: &mut Use) {
        (using.ins, using.weights) = (vec![numbers(7), numbers(7)], vec![(4, 7)]);
    }
    all_refused::<Pool>(
        &valid(),
        &[
            (|p, _| p.ratio = 0, "parameter `ratio`: 0 is outside 1..=65536"),
            (|p, _| p.ratio = u32::MAX, "parameter `ratio`: 4294967295 is outside"),
            (|p, _| p.ratio = 5, "weight 0 is 4x6, expected 5x6"),
            (|p, _| p.mode = PoolMode::Mean, "overlap and ape with mode mean not implemented"),
            (|p, _| (p.mode, p.ape) = (PoolMode::Mean, false), "overlap and ape with mode mean not implemented"),
            (|p, _| (p.mode, p.overlap) = (PoolMode::Mean, false), "overlap and ape with mode mean not implemented"),
            (|p, _| p.overlap = false, "output 0: width is 3, expected 6"),
            (|p, _| p.ape = false, "1 weights, expected 0"),
            (|_, u| u.weights.clear(), "0 weights, expected 1"),
            (|_, u| u.ins.truncate(1), "1 inputs, expected 2"),
            (|_, u| u.ins[1].2 = 5, "input 1: width is 5, expected 6"),
            (|_, u| u.ins[0].1 = Ty::I32, "input 0: type I32, expected F32"),
            (|_, u| u.ins[1].1 = Ty::I32, "input 1: type I32, expected F32"),
            (|_, u| odd(u), "input 0: width is 7, expected an even number with overlap"),
            (|_, u| u.outs[0].2 = 6, "output 0: width is 6, expected 3"),
            (|_, u| u.outs[0].0 = Domain::Outs, "operands of two domains"),
            (|_, u| u.states[0].1 = Access::Read, "state 0: access Read, expected Append"),
            (|_, u| u.states[0].0 = StateKind::Accumulator { shape: vec![6] }, "state 0: an accumulator, expected rows"),
            (|_, u| u.states[0].0 = rows(&[6], 1, Keep::Last(7)), "state 0: parts of [6], expected [6, 6]"),
            (|_, u| u.states[0].0 = rows(&[6, 6], 4, Keep::Last(7)), "state 0: stride is 4, expected 1"),
            (|_, u| u.states[0].0 = rows(&[6, 6], 1, Keep::Last(6)), "state 0: keeps the last 6, expected at least 7"),
        ],
    );
    all_refused::<Pool>(
        &mean(),
        &[
            (|_, u| u.ins.push(numbers(6)), "2 inputs, expected 1"),
            (|_, u| u.weights.push((4, 6)), "1 weights, expected 0"),
            (|_, u| u.states[0].0 = rows(&[6, 6], 1, Keep::Last(3)), "state 0: parts of [6, 6], expected [6]"),
            (|_, u| u.states[0].0 = rows(&[6], 1, Keep::Last(2)), "state 0: keeps the last 2, expected at least 3"),
        ],
    );
}

#[test]
fn groups_of_one_need_nothing_kept() {
    let (mut params, mut using) = mean();
    params.ratio = 1;
    for keep in [Keep::Last(1), Keep::All] {
        using.states[0].0 = rows(&[6], 1, keep);
        assert_eq!(using.prepare::<Pool>(&params), Ok(()));
    }
}
