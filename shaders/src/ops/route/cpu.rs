//! CPU twin. Order: exponentials of `x - max`, their sum as in [`crate::sums`], one division each; the sum of the chosen weights adds
//! rank after rank.

use super::RouteParams;
use crate::contract::CpuCall;
use crate::sums;

pub(super) fn run(params: &RouteParams, call: &mut CpuCall<'_>) -> Result<(), String> {
    let k = params.k as usize;
    for row in 0..call.rows.len() {
        let logits = call.ins[0].row(row);
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if logits.iter().any(|logit| !logit.is_finite()) {
            return Err(format!("a router's scores are not finite in row {row} of the step"));
        }
        let scores = &mut *call.scratch;
        scores.clear();
        scores.extend(logits.iter().map(|logit| (logit - largest).exp()));
        let total = sums::sum(scores);
        scores.iter_mut().for_each(|score| *score /= total);
        for rank in 0..k {
            // Chosen scores become -1, below every score that is left.
            let best = highest(scores);
            call.outs[0].ints(row)[rank] = best as i32;
            call.outs[1].row(row)[rank] = std::mem::replace(&mut scores[best], -1.0);
        }
        let weights = call.outs[1].row(row);
        let divisor = if params.renormalise { weights.iter().sum() } else { 1.0f32 };
        weights.iter_mut().for_each(|weight| *weight = *weight / divisor * params.scale);
    }
    Ok(())
}

/// The index of the highest number, the lowest one among equals.
fn highest(numbers: &[f32]) -> usize {
    let mut best = 0;
    for (index, number) in numbers.iter().enumerate() {
        if *number > numbers[best] {
            best = index;
        }
    }
    best
}
