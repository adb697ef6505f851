//! The one table of cosines and sines: angles in f64, stored in f32, so that every executor turns by the same numbers.

use std::f64::consts::TAU;

use super::{RopeParams, RopeScaling};

/// Frequencies of the pairs of a head, and what is made of a position.
#[derive(Debug, Clone)]
pub struct Angles {
    /// Negative where pairs turn the other way.
    frequencies: Vec<f64>,
    magnitude: f64,
    group: i64,
}

impl Angles {
    /// Angles of checked parameters. The frequency of pair `i` of `n` is `theta^(-i / n)`, stretched as the parameters say.
    pub fn new(params: &RopeParams) -> Self {
        let pairs = (params.end - params.start) / 2;
        let sign = if params.inverse { -1.0 } else { 1.0 };
        let ramp = (params.scaling == RopeScaling::Yarn).then(|| ramp(params, pairs));
        let frequency = |pair: u32| {
            let frequency = sign * params.theta.powf(-f64::from(pair) / f64::from(pairs));
            let Some((low, high)) = ramp else { return frequency };
            let share = ((f64::from(pair) - low) / (high - low)).clamp(0.0, 1.0);
            frequency / f64::from(params.factor) * share + frequency * (1.0 - share)
        };
        let frequencies = (0..pairs).map(frequency).collect();
        Self { frequencies, magnitude: f64::from(params.magnitude), group: i64::from(params.group) }
    }

    /// Pairs of a head.
    pub fn pairs(&self) -> usize {
        self.frequencies.len()
    }

    /// Cosine and sine of each pair at a position, times the magnitude.
    pub fn at(&self, position: i32) -> impl Iterator<Item = (f32, f32)> + '_ {
        let position = i64::from(position);
        let turned = (position - position.rem_euclid(self.group)) as f64;
        self.frequencies.iter().map(move |frequency| {
            let (sin, cos) = (turned * frequency).sin_cos();
            ((cos * self.magnitude) as f32, (sin * self.magnitude) as f32)
        })
    }
}

/// Between which pairs the ramp of yarn lies: those before it turn more than `beta_fast` times within the original context and keep their
/// frequency, those after it turn less than `beta_slow` times and have it divided by the factor.
fn ramp(params: &RopeParams, pairs: u32) -> (f64, f64) {
    let columns = f64::from(pairs) * 2.0;
    // The pair, as a fraction, that turns so often within the original context.
    let pair_of = |turns: f32| {
        let wavelength = f64::from(params.context_original) / (f64::from(turns) * TAU);
        columns * wavelength.ln() / (2.0 * params.theta.ln())
    };
    let low = pair_of(params.beta_fast).floor().max(0.0);
    let high = pair_of(params.beta_slow).ceil().min(columns - 1.0);
    (low, if low == high { high + 0.001 } else { high })
}
