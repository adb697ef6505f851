//! CPU twin. The only rounding is that of `exp((logit - max) / temperature)`; everything after it is integers.

use std::cmp::Ordering;

use super::philox;
use crate::contract::Sampling;

/// Units of the best id's probability.
const UNITS: f32 = (1u32 << 31) as f32;

/// The id that a row of logits gives at a position.
///
/// An error where a logit is not a number, or none is finite: a sign of a broken model that a choice would hide.
pub fn choose(logits: &[f32], sampling: &Sampling, position: u32) -> Result<usize, String> {
    let best = best(logits)?;
    if sampling.temperature == 0.0 {
        return Ok(best);
    }
    let kept = kept(logits, sampling)?;
    let total: u64 = kept.iter().map(|(_, units)| units).sum();
    // The draw scaled to 0..total, which a 128-bit product does without bias worth naming.
    let mut left = ((u128::from(philox::draw(sampling.seed, position)) * u128::from(total)) >> 64) as u64;
    for (id, units) in &kept {
        if left < *units {
            return Ok(*id);
        }
        left -= units;
    }
    Ok(best)
}

/// The ids that may be drawn, in ascending order, with their probabilities in units.
pub fn kept(logits: &[f32], sampling: &Sampling) -> Result<Vec<(usize, u64)>, String> {
    let largest = logits[best(logits)?];
    let units = |id: usize| (((logits[id] - largest) / sampling.temperature).exp() * UNITS).round() as u64;
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    let all = sampling.top_k == 0 || sampling.top_k as usize >= ids.len();
    if !all || sampling.top_p < 1.0 {
        // No logit is NaN here, and zeros of both signs are equal.
        ids.sort_unstable_by(|a, b| logits[*b].partial_cmp(&logits[*a]).unwrap_or(Ordering::Equal).then(a.cmp(b)));
        if !all {
            ids.truncate(sampling.top_k as usize);
        }
        keep_top_p(&mut ids, sampling.top_p, units);
        ids.sort_unstable();
    }
    // The best id's probability is all units, and a product with a power of two is exact.
    let least = f64::from(sampling.min_p) * f64::from(UNITS);
    Ok(ids.into_iter().map(|id| (id, units(id))).filter(|(_, units)| *units as f64 >= least).collect())
}

/// Cuts `ids`, the best first, after the one whose probability completes `top_p` of the sum.
fn keep_top_p(ids: &mut Vec<usize>, top_p: f32, units: impl Fn(usize) -> u64) {
    if top_p >= 1.0 {
        return;
    }
    let total: u64 = ids.iter().map(|id| units(*id)).sum();
    let wanted = f64::from(top_p) * total as f64;
    let mut sum = 0;
    let reached = ids.iter().position(|id| {
        sum += units(*id);
        sum as f64 >= wanted
    });
    ids.truncate(reached.map_or(ids.len(), |last| last + 1));
}

/// The highest logit's id, the lowest among equals.
fn best(logits: &[f32]) -> Result<usize, String> {
    if logits.iter().any(|logit| logit.is_nan()) {
        return Err("a logit is not a number".into());
    }
    let best = logits.iter().enumerate().fold(0, |best, (id, logit)| if *logit > logits[best] { id } else { best });
    if logits.get(best).is_some_and(|logit| logit.is_finite()) { Ok(best) } else { Err("no logit is finite".into()) }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
