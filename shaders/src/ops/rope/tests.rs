//! What `rope@1` refuses, and its angles.

use coli_plugin_api::program::{Domain, Ty};

use super::angles::Angles;
use super::{Rope, RopeParams, RopeStyle};
use crate::contract::{Op, OpFacts, ValueFacts};

const PLAIN: RopeParams = RopeParams {
    style: RopeStyle::Pair,
    head_width: 8,
    start: 4,
    end: 8,
    theta: 1e4,
    scaling: super::RopeScaling::None,
    factor: 1.0,
    context_original: 0,
    beta_fast: 0.0,
    beta_slow: 0.0,
    magnitude: 1.0,
    axes: 1,
    inverse: false,
    group: 1,
};

fn refusal(params: RopeParams) -> Option<String> {
    let value = |ty: Ty, width: u32| ValueFacts { domain: &Domain::Tokens, ty, width };
    let (ins, outs) = ([value(Ty::F32, 16), value(Ty::I32, 1)], [value(Ty::F32, 16)]);
    let facts = OpFacts { params: &[], ins: &ins, outs: &outs, weights: &[], states: &[], groups: &[] };
    Rope::prepare(params, &facts).err()
}

#[test]
fn builders_set_what_they_name() {
    assert_eq!(RopeParams::part(RopeStyle::Pair, 8, 4, 8, 1e4), PLAIN);
    let yarn = PLAIN.yarn(4.0, 4096, 32.0, 1.0);
    assert_eq!((yarn.factor, yarn.context_original, yarn.beta_fast, yarn.beta_slow, yarn.magnitude), (4.0, 4096, 32.0, 1.0, 1.0));
    assert!(PLAIN.inverse().inverse && !PLAIN.inverse);
    assert_eq!((PLAIN.grouped(4).group, PLAIN.magnitude(0.5).magnitude), (4, 0.5));
    for params in [PLAIN, yarn, yarn.inverse().grouped(4).magnitude(1.25), PLAIN.magnitude(2.0)] {
        assert_eq!(refusal(params), None);
    }
}

#[test]
fn numbers_that_make_no_angles_are_refused() {
    let yarn = PLAIN.yarn(4.0, 4096, 32.0, 1.0);
    for (params, expected) in [
        (RopeParams { factor: 4.0, ..PLAIN }, "parameter `factor`: 4 with scaling none, expected 1"),
        (RopeParams { context_original: 1, ..PLAIN }, "numbers for yarn with scaling none"),
        (RopeParams { beta_fast: 1.0, ..PLAIN }, "numbers for yarn with scaling none"),
        (RopeParams { beta_slow: 1.0, ..PLAIN }, "numbers for yarn with scaling none"),
        (RopeParams { theta: 1.0, ..yarn }, "parameter `theta`: 1 with scaling yarn, expected more than 1"),
        (RopeParams { factor: 0.5, ..yarn }, "parameter `factor`: 0.5 with scaling yarn, expected at least 1"),
        (RopeParams { context_original: 0, ..yarn }, "parameter `context_original`: 0 with scaling yarn"),
        (RopeParams { beta_slow: 0.0, ..yarn }, "`beta_slow`: 32 and 0 with scaling yarn, expected fast >= slow > 0"),
        (RopeParams { beta_fast: 0.5, ..yarn }, "`beta_slow`: 0.5 and 1 with scaling yarn"),
        (RopeParams { axes: 2, ..PLAIN }, "2 axes not implemented"),
        (RopeParams { end: 7, ..PLAIN }, "4..7 is not an even range inside a head of 8"),
        (RopeParams { head_width: 7, end: 6, ..PLAIN }, "parameter `head_width`: 7 does not divide a width of 16"),
    ] {
        let text = refusal(params).unwrap_or_default();
        assert!(text.contains(expected), "`{text}`, expected `{expected}`");
    }
}

/// Cosines are even and sines odd, to the bit; a group's positions have the angles of its first.
#[test]
fn inverse_and_groups_are_exact() {
    let of = |params: RopeParams, position: i32| Angles::new(&params).at(position).collect::<Vec<_>>();
    for params in [PLAIN, PLAIN.yarn(16.0, 64, 32.0, 1.0).magnitude(1.5)] {
        for position in [0, 1, 7, 1_000_003, i32::MAX, i32::MIN] {
            let there = of(params, position);
            assert_eq!(there.iter().map(|(cos, sin)| (*cos, -sin)).collect::<Vec<_>>(), of(params.inverse(), position));
            let first = i64::from(position).div_euclid(6) * 6;
            if let Ok(first) = i32::try_from(first) {
                assert_eq!(of(params.grouped(6), position), of(params, first));
            }
        }
    }
}

/// Extreme numbers that the checks let through give numbers.
#[test]
fn extremes_give_finite_angles() {
    let yarn = PLAIN.yarn(4.0, 4096, 32.0, 1.0);
    for params in [
        RopeParams { theta: 1.0f64.next_up(), ..yarn },
        RopeParams { theta: 1e12, context_original: u32::MAX, ..yarn },
        RopeParams { beta_fast: f32::MAX, beta_slow: f32::from_bits(1), factor: f32::MAX, ..yarn },
        RopeParams { beta_fast: f32::from_bits(1), beta_slow: f32::from_bits(1), ..yarn },
        RopeParams { beta_fast: f32::MAX, beta_slow: f32::MAX, context_original: 1, ..yarn },
    ] {
        assert_eq!(refusal(params), None);
        assert!(Angles::new(&params).at(i32::MAX).all(|(cos, sin)| cos.is_finite() && sin.is_finite()), "{params:?}");
    }
}
