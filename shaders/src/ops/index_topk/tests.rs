//! What `prepare` refuses.

use coli_plugin_api::describe::{Keep, StateKind};
use coli_plugin_api::program::{Access, Domain, Ty};

use super::{IndexTopk, IndexTopkParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers, rows};

fn valid() -> (IndexTopkParams, Use) {
    let params = IndexTopkParams { cand_block: 8, cand_given: true, cand_out: 7, ..IndexTopkParams::positions(2, 3, 0.5, 4) };
    let using = Use {
        ins: vec![numbers(10), numbers(2), ids(9)],
        outs: vec![ids(15), ids(7)],
        weights: vec![],
        states: vec![(rows(&[5], 4, Keep::All), Access::Read)],
    };
    (params, using)
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    all_refused::<IndexTopk>(
        &valid(),
        &[
            (|p, _| p.heads = 0, "parameter `heads`: 0 is outside 1..=65536"),
            (|p, _| p.heads = 5, "input 0: width is 10, expected 25"),
            (|p, _| p.k = 0, "parameter `k`: 0 is outside 1..=1048576"),
            (|p, _| p.k = 4, "output 0: width is 15, expected 19"),
            (|p, _| p.k = 1_048_577, "parameter `k`: 1048577 is outside"),
            (|p, _| p.scale = f32::INFINITY, "parameter `scale`: inf is not a finite number"),
            (|p, _| p.stride = 0, "parameter `stride`: 0 is outside 1..=65536"),
            (|p, _| p.stride = 5, "state 0: stride is 4, expected 5"),
            (|p, _| p.expand = false, "output 0: width is 15, expected 3"),
            (|p, _| p.weighted = false, "3 inputs, expected 2"),
            (|p, _| p.cand_given = false, "3 inputs, expected 2"),
            (|p, _| p.cand_block = 0, "parameter `cand_block`: 0 with candidates"),
            (|p, _| p.cand_block = u32::MAX, "parameter `cand_block`: 4294967295 is outside 0..=1048576"),
            (|p, _| (p.cand_given, p.cand_out) = (false, 0), "parameter `cand_block`: 8 without candidates"),
            (|p, _| p.cand_out = 0, "2 outputs, expected 1"),
            (|p, _| p.cand_out = 8, "output 1: width is 7, expected 8"),
            (|p, _| p.cand_out = u32::MAX, "parameter `cand_out`: 4294967295 is outside 0..=1048576"),
        ],
    );
}

#[test]
fn operands_and_states_that_do_not_fit_are_refused() {
    fn huge(params: &mut IndexTopkParams, using: &mut Use) {
        (params.k, params.stride) = (1_048_576, 65_536);
        using.states[0].0 = rows(&[5], 65_536, Keep::All);
    }
    all_refused::<IndexTopk>(
        &valid(),
        &[
            (huge, "output 0: width is 15, expected 68719542271"),
            (|_, u| u.ins.truncate(2), "2 inputs, expected 3"),
            (|_, u| u.ins[0].2 = 9, "input 0: width is 9, expected 10"),
            (|_, u| u.ins[1].2 = 3, "input 1: width is 3, expected 2"),
            (|_, u| u.ins[1].1 = Ty::I32, "input 1: type I32, expected F32"),
            (|_, u| u.ins[2].1 = Ty::F32, "input 2: type F32, expected I32"),
            (|_, u| u.ins[2].0 = Domain::Outs, "operands of two domains"),
            (|_, u| u.outs[0].1 = Ty::F32, "output 0: type F32, expected I32"),
            (|_, u| u.outs[1].1 = Ty::F32, "output 1: type F32, expected I32"),
            (|_, u| u.weights.push((1, 1)), "1 weights, expected 0"),
            (|_, u| u.states.clear(), "0 states, expected 1"),
            (|_, u| u.states[0].1 = Access::Append, "state 0: access Append, expected Read"),
            (|_, u| u.states[0].0 = StateKind::Accumulator { shape: vec![5] }, "state 0: an accumulator, expected rows"),
            (|_, u| u.states[0].0 = rows(&[2, 3], 4, Keep::All), "state 0: 2 parts, expected 1"),
            (|_, u| u.states[0].0 = rows(&[5], 1, Keep::All), "state 0: stride is 1, expected 4"),
            (|_, u| u.states[0].0 = rows(&[5], 4, Keep::Last(64)), "state 0: keeps the last 64, expected all"),
        ],
    );
}
