//! What `prepare` refuses.

use super::{Glu, GluKind, GluParams};
use crate::ops::refusals::{Use, all_refused, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using = Use { ins: vec![numbers(6), numbers(6)], outs: vec![numbers(6)], weights: vec![], states: vec![] };
    all_refused::<Glu>(
        &(GluParams::GELU, using),
        &[
            (|p, _| p.kind = GluKind::Situ, "kind situ not implemented"),
            (|p, _| p.kind = GluKind::SiluClamp, "parameter `limit`: 0 with kind silu clamp"),
            (|p, _| p.limit = 1.0, "parameter `limit`: 1 with kind gelu"),
            (|_, u| u.ins[1].2 = 5, "input 1: width is 5, expected 6"),
            (|_, u| u.outs[0].2 = 5, "output 0: width is 5, expected 6"),
            (|_, u| drop(u.ins.pop()), "1 inputs, expected 2"),
        ],
    );
}
