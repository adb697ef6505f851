//! What `prepare` refuses.

use coli_plugin_api::program::Domain;

use super::{Ew, EwKind, EwParams, EwRepeat};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

fn using(widths: &[u32]) -> Use {
    Use { ins: widths.iter().map(|width| numbers(*width)).collect(), outs: vec![numbers(12)], weights: vec![], states: vec![] }
}

#[test]
fn whatever_does_not_fit_is_refused() {
    all_refused::<Ew>(
        &(EwParams::of(EwKind::Mul), using(&[12, 12])),
        &[
            (|p, _| p.scale = 2.0, "parameter `scale`: 2 with kind mul, expected 1"),
            (|p, _| p.groups = 3, "parameter `groups`: 3 with repeat none"),
            (|p, _| p.groups = 0, "parameter `groups`: 0 is outside 1..=1048576"),
            (|p, _| p.kind = EwKind::Modulate, "2 inputs, expected 3"),
            (|p, _| p.repeat = EwRepeat::Group, "input 1: width is 12, expected 1"),
            (|_, u| u.ins[1].2 = 3, "input 1: width is 3, expected 12"),
            (|_, u| u.ins[1] = ids(12), "input 1: type I32, expected F32"),
            (|_, u| u.ins.push(numbers(12)), "3 inputs, expected 2"),
            (|_, u| u.outs[0].2 = 3, "output 0: width is 3, expected 12"),
            (|_, u| u.ins[1].0 = Domain::Outs, "operands of two domains"),
        ],
    );
    all_refused::<Ew>(
        &(EwParams::of(EwKind::Modulate).group(3), using(&[12, 3, 3])),
        &[
            (|p, _| p.groups = 5, "parameter `groups`: 5 does not divide a width of 12"),
            (|p, _| p.groups = 4, "input 1: width is 3, expected 4"),
            (|p, _| p.repeat = EwRepeat::Column, "input 1: width is 3, expected 4"),
            (|_, u| u.ins[2].2 = 12, "input 2: width is 12, expected 3"),
            (|p, _| p.kind = EwKind::Distance, "3 inputs, expected 2"),
        ],
    );
    all_refused::<Ew>(&(EwParams::of(EwKind::MulSilu).column(3), using(&[12, 4])), &[]);
}
