//! What `prepare` refuses, and what only a run can show.

use coli_plugin_api::program::Domain;

use super::cpu::{choose, weigh};
use super::{Route, RouteBias, RouteParams};
use crate::ops::refusals::{Use, all_refused, ids, numbers};

#[test]
fn whatever_does_not_fit_is_refused() {
    let using = Use { ins: vec![numbers(12)], outs: vec![ids(3), numbers(3)], weights: vec![(1, 12)], states: vec![] };
    let given = Use { ins: vec![numbers(12), ids(3)], weights: vec![], ..using.clone() };
    let biased = RouteParams { bias: RouteBias::Pick, ..RouteParams::sigmoid(3, 2.5).grouped(4, 2) };
    all_refused::<Route>(
        &(biased, using),
        &[
            (|p, _| p.bias = RouteBias::ByModality, "bias by modality not implemented"),
            (|p, _| p.shared = 2, "shared columns not implemented"),
            (|p, _| p.bias = RouteBias::None, "1 weights, expected 0"),
            (|p, _| p.k = 0, "parameter `k`: 0 is outside 1..=1024"),
            (|p, _| p.k = 7, "parameter `k`: 7 of 6 experts"),
            (|p, _| p.groups = 0, "parameter `groups`: 0 is outside 1..=1024"),
            (|p, _| p.groups = 5, "parameter `groups`: 5 does not divide 12 experts"),
            (|p, _| p.groups = 12, "parameter `groups`: 12 of 1 experts each, expected 2 or more each"),
            (|p, _| p.groups_kept = 5, "parameter `groups_kept`: 5 of 4 groups"),
            (|p, _| p.groups_kept = 0, "parameter `groups_kept`: 0 is outside 1..=1024"),
            (|p, _| p.scale = f32::NAN, "parameter `scale`: NaN is not a finite number"),
            (|_, u| u.weights.clear(), "0 weights, expected 1"),
            (|_, u| u.weights[0] = (1, 11), "weight 0 is 1x11, expected 1x12"),
            (|_, u| u.ins[0] = ids(12), "input 0: type I32, expected F32"),
            (|_, u| u.outs[0].2 = 2, "output 0: width is 2, expected 3"),
            (|_, u| u.outs[1] = ids(3), "output 1: type I32, expected F32"),
            (|_, u| u.outs[1].0 = Domain::Outs, "operands of two domains"),
            (|p, u| (p.given_ids, u.ins) = (true, vec![numbers(12), ids(3)]), "parameter `given_ids`: on with a bias or groups"),
        ],
    );
    all_refused::<Route>(
        &(RouteParams { given_ids: true, ..RouteParams::sqrt_softplus(3, 1.5) }, given),
        &[
            (|p, _| (p.groups, p.groups_kept) = (4, 2), "parameter `given_ids`: on with a bias or groups"),
            (|p, _| p.groups_kept = 2, "parameter `groups_kept`: 2 of 1 groups"),
            (|p, _| p.given_ids = false, "2 inputs, expected 1"),
            (|_, u| u.ins[1].2 = 2, "input 1: width is 2, expected 3"),
            (|_, u| u.ins[1] = numbers(3), "input 1: type F32, expected I32"),
            (|_, u| drop(u.ins.pop()), "1 inputs, expected 2"),
        ],
    );
}

/// Sums of two that overflow leave the order of the groups and of the experts as it is.
#[test]
fn the_largest_scores_are_chosen_among() {
    let params = RouteParams::sigmoid(3, 1.0).grouped(3, 2);
    let mut scores = [-f32::MAX, -f32::MAX, f32::MAX, f32::MAX, 0.0, 1.0];
    let mut chosen = [0; 3];
    choose(&params, &mut scores, &mut chosen);
    assert_eq!(chosen, [2, 3, 5]);
}

#[test]
fn a_given_id_outside_the_experts_is_an_error() {
    let params = RouteParams::sigmoid(2, 1.0);
    for id in [2, -1, i32::MAX, i32::MIN] {
        let error = weigh(&params, &[0.5, 0.25], &[0, id], &mut [0.0; 2]).unwrap_err();
        assert_eq!(error, format!("id {id} is outside 2 experts"));
    }
    let mut weights = [0.0; 2];
    assert_eq!(weigh(&params, &[0.5, 0.25], &[1, 1], &mut weights), Ok(()));
    assert_eq!(weights, [0.5, 0.5]);
}
