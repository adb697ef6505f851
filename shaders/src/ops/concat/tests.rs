//! What `prepare` refuses.

use coli_plugin_api::program::Domain;
use coli_plugin_api::recorder::Recorder;

use super::{Concat, ConcatParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using = Use { ins: vec![numbers(4), numbers(3), numbers(4)], outs: vec![numbers(11)], weights: vec![], states: vec![] };
    all_refused::<Concat>(
        &(ConcatParams { parts: 3 }, using),
        &[
            (|p, _| p.parts = 0, "parameter `parts`: 0 is outside 1..=16"),
            (|p, _| p.parts = 17, "parameter `parts`: 17 is outside 1..=16"),
            (|p, _| p.parts = 2, "3 inputs, expected 2"),
            (|_, u| u.ins[1] = ids(3), "input 1: type I32, expected F32"),
            (|_, u| u.ins[0] = ids(4), "input 1: type F32, expected I32"),
            (|_, u| u.outs[0] = ids(11), "output 0: type I32, expected F32"),
            (|_, u| u.ins[2].2 = u32::MAX, "output 0: width is 11, expected 4294967302"),
            (|_, u| u.outs[0].2 = 12, "output 0: width is 12, expected 11"),
            (|_, u| u.ins[2].0 = Domain::Outs, "operands of two domains"),
            (|_, u| u.weights.push((1, 1)), "1 weights, expected 0"),
        ],
    );
    let ints = Use { ins: vec![ids(2)], outs: vec![ids(2)], weights: vec![], states: vec![] };
    all_refused::<Concat>(&(ConcatParams { parts: 1 }, ints), &[]);
}

#[test]
fn no_parts_are_no_panic_of_the_record_function() {
    let mut r = Recorder::default();
    assert_eq!(super::record(&mut r, &[]).width(), 0);
    assert_eq!(r.finish().map(|recording| recording.ops.len()), Ok(1));
}
