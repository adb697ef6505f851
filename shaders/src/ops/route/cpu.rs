//! CPU twin. Order: a softmax takes exponentials of `x - max`, their sum as in [`crate::sums`], one division each. A bias is added to a
//! score and rounded; a group is its best plus its second best. The sum of the chosen weights adds rank after rank.

use super::{RouteParams, RouteScore};
use crate::contract::CpuCall;
use crate::ops::act::functions::{sigmoid, sqrt_softplus};
use crate::sums;

pub(super) fn run(params: &RouteParams, call: &mut CpuCall<'_>) -> Result<(), String> {
    let experts = call.ins[0].width();
    let bias = (!call.weights.is_empty()).then(|| call.weight(0).decode());
    call.scratch.resize(2 * experts, 0.0);
    for row in 0..call.rows.len() {
        let (scores, choice) = call.scratch.split_at_mut(experts);
        let logits = call.ins[0].row(row);
        if logits.iter().any(|logit| !logit.is_finite()) {
            return Err(format!("a router's scores are not finite in row {row} of the step"));
        }
        score(params.score, logits, scores);
        let ids = call.outs[0].ints(row);
        if params.given_ids {
            ids.copy_from_slice(call.ins[1].ints(row));
        } else {
            choice.copy_from_slice(scores);
            choice.iter_mut().zip(bias.iter().flatten()).for_each(|(choice, bias)| *choice += bias);
            if choice.iter().any(|score| !score.is_finite()) {
                return Err(format!("a router's biased scores are not finite in row {row} of the step"));
            }
            choose(params, choice, ids);
        }
        let (ids, weights) = call.outs.split_at_mut(1);
        weigh(params, scores, ids[0].ints(row), weights[0].row(row))?;
    }
    Ok(())
}

fn score(score: RouteScore, logits: &[f32], scores: &mut [f32]) {
    let pairs = scores.iter_mut().zip(logits);
    match score {
        RouteScore::Softmax => {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            pairs.for_each(|(score, logit)| *score = (logit - largest).exp());
            let total = sums::sum(scores);
            scores.iter_mut().for_each(|score| *score /= total);
        }
        RouteScore::Sigmoid => pairs.for_each(|(score, logit)| *score = sigmoid(*logit)),
        RouteScore::SqrtSoftplus => pairs.for_each(|(score, logit)| *score = sqrt_softplus(*logit)),
    }
}

/// The ids of the k best; what is chosen or not to be chosen becomes minus infinity.
pub(super) fn choose(params: &RouteParams, choice: &mut [f32], ids: &mut [i32]) {
    if params.groups > 1 {
        let size = choice.len() / params.groups as usize;
        let sums: Vec<f32> = choice.chunks_exact(size).map(best_two).collect();
        let mut kept = vec![false; sums.len()];
        for _ in 0..params.groups_kept {
            let left = sums.iter().copied().enumerate().filter(|(group, _)| !kept[*group]);
            let best = highest(left);
            kept[best] = true;
        }
        let dropped = choice.chunks_exact_mut(size).zip(kept).filter(|(_, kept)| !kept);
        dropped.for_each(|(group, _)| group.fill(f32::NEG_INFINITY));
    }
    for id in ids {
        let best = highest(choice.iter().copied().enumerate());
        choice[best] = f32::NEG_INFINITY;
        *id = best as i32;
    }
}

/// The best number of a group plus the second best.
fn best_two(group: &[f32]) -> f32 {
    let (mut first, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for number in group {
        if *number > first {
            (first, second) = (*number, first);
        } else if *number > second {
            second = *number;
        }
    }
    first + second
}

/// The index of the highest number, the first one among equals; 0 where there are none.
fn highest(numbers: impl Iterator<Item = (usize, f32)>) -> usize {
    let first = |best: Option<(usize, f32)>, (index, number)| match best {
        Some((_, highest)) if number <= highest => best,
        _ => Some((index, number)),
    };
    numbers.fold(None, first).map_or(0, |(index, _)| index)
}

pub(super) fn weigh(params: &RouteParams, scores: &[f32], ids: &[i32], weights: &mut [f32]) -> Result<(), String> {
    for (id, weight) in ids.iter().zip(&mut *weights) {
        let score = usize::try_from(*id).ok().and_then(|id| scores.get(id));
        *weight = *score.ok_or_else(|| format!("id {id} is outside {} experts", scores.len()))?;
    }
    let total: f32 = weights.iter().sum();
    let divisor = match (params.renormalise, params.score) {
        (false, _) => 1.0,
        (true, RouteScore::Softmax) => total,
        (true, _) => total + 1e-20,
    };
    weights.iter_mut().for_each(|weight| *weight = *weight / divisor * params.scale);
    Ok(())
}
