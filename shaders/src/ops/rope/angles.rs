//! The one table of cosines and sines: angles in f64, stored in f32, so that every executor turns by the same numbers.

/// Frequencies of the pairs of a head.
#[derive(Debug, Clone)]
pub struct Angles {
    frequencies: Vec<f64>,
}

impl Angles {
    /// Frequencies `theta^(-i / pairs)` for pair `i`.
    pub fn new(theta: f64, pairs: u32) -> Self {
        Self { frequencies: (0..pairs).map(|pair| theta.powf(-f64::from(pair) / f64::from(pairs))).collect() }
    }

    /// Pairs of a head.
    pub fn pairs(&self) -> usize {
        self.frequencies.len()
    }

    /// Cosine and sine of each pair at a position.
    pub fn at(&self, position: i32) -> impl Iterator<Item = (f32, f32)> + '_ {
        self.frequencies.iter().map(move |frequency| {
            let (sin, cos) = (f64::from(position) * frequency).sin_cos();
            (cos as f32, sin as f32)
        })
    }
}
