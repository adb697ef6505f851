//! What `prepare` refuses.

use coli_plugin_api::program::Domain;

use super::{Dot, DotParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using = Use { ins: vec![numbers(12), numbers(12)], outs: vec![numbers(4)], weights: vec![], states: vec![] };
    all_refused::<Dot>(
        &(DotParams { groups: 4, scale: 0.5 }, using),
        &[
            (|p, _| p.groups = 0, "parameter `groups`: 0 is outside 1..=1048576"),
            (|p, _| p.groups = 5, "parameter `groups`: 5 does not divide a width of 12"),
            (|p, _| p.groups = 3, "output 0: width is 4, expected 3"),
            (|p, _| p.scale = f32::NAN, "parameter `scale`: NaN is not a finite number"),
            (|_, u| u.ins[1].2 = 4, "input 1: width is 4, expected 12"),
            (|_, u| u.ins[0] = ids(12), "input 0: type I32, expected F32"),
            (|_, u| u.ins[1] = ids(12), "input 1: type I32, expected F32"),
            (|_, u| u.outs[0].0 = Domain::Outs, "operands of two domains"),
            (|_, u| drop(u.ins.pop()), "1 inputs, expected 2"),
        ],
    );
}
