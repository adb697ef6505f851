//! What `prepare` refuses.

use super::{Norm, NormKind, NormParams, Weighting};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

fn using(weights: &[(u32, u32)]) -> Use {
    Use { ins: vec![numbers(12)], outs: vec![numbers(12)], weights: weights.to_vec(), states: vec![] }
}

#[test]
fn whatever_does_not_fit_is_refused() {
    all_refused::<Norm>(
        &(NormParams::rms(1e-6).per_head(3).zero_centred(), using(&[(1, 4)])),
        &[
            (|p, _| p.groups = 0, "parameter `groups`: 0 is outside 1..=1048576"),
            (|p, _| p.groups = 5, "parameter `groups`: 5 does not divide a width of 12"),
            (|p, _| p.groups = 4, "weight 0 is 1x4, expected 1x3"),
            (|p, _| p.eps = 2.0, "parameter `eps`: 2 is outside 0"),
            (|p, _| p.scale = f32::NAN, "parameter `scale`: NaN is not a finite number"),
            (|p, _| p.weighting = Weighting::None, "parameter `zero_centred`: on without a weight"),
            (|p, _| p.weighting = Weighting::Full, "weight 0 is 1x4, expected 1x12"),
            (|_, u| u.weights.clear(), "0 weights, expected 1"),
            (|_, u| u.weights.push((1, 4)), "2 weights, expected 1"),
            (|p, u| (p.kind, u.weights) = (NormKind::L2, vec![(1, 4); 2]), "2 weights, expected 1"),
            (|_, u| u.ins[0] = ids(12), "input 0: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 4, "output 0: width is 4, expected 12"),
        ],
    );
    all_refused::<Norm>(
        &(NormParams::layer(1e-6), using(&[(1, 12), (1, 12)])),
        &[
            (|_, u| u.weights[1] = (1, 4), "weight 1 is 1x4, expected 1x12"),
            (|_, u| u.weights.push((1, 12)), "3 weights, expected 1 to 2"),
            (|p, _| p.weighting = Weighting::None, "2 weights, expected 0"),
            (|p, _| p.kind = NormKind::Rms, "2 weights, expected 1"),
        ],
    );
    all_refused::<Norm>(&(NormParams::layer(1e-6).per_head(3).full(), using(&[(1, 12)])), &[]);
    all_refused::<Norm>(&(NormParams::l2(3, 1e-6, 0.5).eps_outside(), using(&[])), &[]);
}
