//! What `prepare` refuses.

use coli_plugin_api::describe::{Keep, StateKind};
use coli_plugin_api::program::{Access, Domain, Ty};

use super::{Delta, DeltaDecay, DeltaParams};
use crate::ops::refusals::{Use, all_refused, numbers, rows};

fn valid() -> (DeltaParams, Use) {
    let using = Use {
        ins: vec![numbers(6), numbers(6), numbers(20), numbers(4), numbers(4)],
        outs: vec![numbers(20)],
        weights: vec![(1, 4), (1, 4)],
        states: vec![(StateKind::Accumulator { shape: vec![4, 3, 5] }, Access::Update)],
    };
    (DeltaParams::softplus(2), using)
}

#[test]
fn whatever_does_not_fit_is_refused() {
    fn shape(using: &mut Use, shape: &[u32]) {
        using.states[0].0 = StateKind::Accumulator { shape: shape.into() };
    }
    all_refused::<Delta>(
        &valid(),
        &[
            (|p, _| p.key_heads = 0, "parameter `key_heads`: 0 is outside 1..=65536"),
            (|p, _| p.key_heads = 3, "parameter `key_heads`: 3 does not divide 4 heads"),
            (|p, _| p.key_heads = 65_536, "parameter `key_heads`: 65536 does not divide 4 heads"),
            (|p, _| p.key_heads = 4, "input 0: width is 6, expected 12"),
            (|p, _| p.bound = -5.0, "parameter `bound`: -5 with decay softplus, expected 0"),
            (|p, _| p.bound = f32::NAN, "parameter `bound`: NaN is not a finite number"),
            (|p, _| p.decay = DeltaDecay::Bounded, "parameter `bound`: 0, expected a number below 0"),
            (|p, _| p.per_channel = true, "input 3: width is 4, expected 12"),
            (|_, u| u.ins.truncate(4), "4 inputs, expected 5"),
            (|_, u| u.ins[1].2 = 3, "input 1: width is 3, expected 6"),
            (|_, u| u.ins[2].2 = 4, "input 2: width is 4, expected 20"),
            (|_, u| u.ins[4].2 = 1, "input 4: width is 1, expected 4"),
            (|_, u| u.ins[4].1 = Ty::I32, "input 4: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 4, "output 0: width is 4, expected 20"),
            (|_, u| u.ins[3].0 = Domain::Outs, "operands of two domains"),
            (|_, u| u.weights[0] = (1, 3), "weight 0 is 1x3, expected 1x4 or longer"),
            (|_, u| u.weights[0] = (4, 4), "weight 0 is 4x4, expected 1x4 or longer"),
            (|_, u| u.weights[1] = (1, 5), "weight 1 is 1x5, expected 1x4"),
            (|_, u| u.states[0].1 = Access::Append, "state 0: access Append, expected Update"),
            (|_, u| u.states[0].0 = rows(&[5], 1, Keep::All), "state 0: rows, expected an accumulator"),
            (|_, u| shape(u, &[12, 5]), "state 0: 2 dimensions, expected 3: heads, width of a key, width of a value"),
            (|_, u| shape(u, &[4, 3, 5, 1]), "state 0: 4 dimensions, expected 3"),
            (|_, u| shape(u, &[u32::MAX - 1, u32::MAX, u32::MAX]), "input 0: width is 6, expected 8589934590"),
        ],
    );
}

/// A checkpoint may store more numbers than there are heads.
#[test]
fn a_may_be_longer() {
    let (params, mut using) = valid();
    using.weights[0] = (1, 128);
    assert_eq!(using.prepare::<Delta>(&params), Ok(()));
}
