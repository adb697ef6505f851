//! What `prepare` refuses, and numbers that are none.

use coli_plugin_api::program::{Domain, Ty};

use super::{Act, ActKind, ActParams, functions};
use crate::ops::refusals::{Use, all_refused, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using = Use { ins: vec![numbers(6)], outs: vec![numbers(6)], weights: vec![(1, 6)], states: vec![] };
    all_refused::<Act>(
        &(ActParams::of(ActKind::Silu).scaled(2.0).plus(1.0), using.clone()),
        &[
            (|p, _| p.limit = 1.0, "parameter `limit`: 1 with kind silu"),
            (|p, _| p.limit = -1.0, "parameter `limit`: -1 is outside 0"),
            (|p, _| p.kind = ActKind::Clamp, "parameter `limit`: 0 with kind clamp"),
            (|p, _| p.scale = f32::NAN, "parameter `scale`: NaN is not a finite number"),
            (|p, _| p.add = f32::INFINITY, "parameter `add`: inf is not a finite number"),
            (|_, u| u.weights = vec![(1, 5)], "weight 0 is 1x5, expected 1x6"),
            (|_, u| u.weights = vec![(6, 1)], "weight 0 is 6x1, expected 1x6"),
            (|_, u| u.weights.push((1, 6)), "2 weights, expected 0 to 1"),
            (|_, u| u.ins[0].1 = Ty::I32, "input 0: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 5, "output 0: width is 5, expected 6"),
            (|_, u| u.outs[0].0 = Domain::Outs, "operands of two domains"),
            (|_, u| u.ins.push(numbers(6)), "2 inputs, expected 1"),
            (|_, u| u.outs.clear(), "0 outputs, expected 1"),
        ],
    );
    let unweighted = Use { weights: vec![], ..using };
    all_refused::<Act>(&(ActParams::clamp(7.0), unweighted), &[(|p, _| p.limit = 0.0, "parameter `limit`: 0 with kind clamp")]);
}

#[test]
fn the_ends_of_functions_are_numbers_and_nan_stays() {
    for f in [functions::sigmoid, functions::relu, functions::signsqrt_sigmoid, functions::gelu, functions::gelu_tanh, functions::silu] {
        assert!(f(1e4).is_finite() && f(-1e4).abs() < 1e-30, "{} and {}", f(1e4), f(-1e4));
        assert!(f(f32::NAN).is_nan());
    }
    assert_eq!(functions::sqrt_softplus(f32::MAX), f32::MAX.sqrt());
    assert_eq!(functions::sqrt_softplus(f32::MIN), 0.0);
    assert_eq!((functions::signsqrt_sigmoid(0.0), functions::signsqrt_sigmoid(-0.0)), (0.5, 0.5));
}
