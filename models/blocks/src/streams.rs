//! A residual of n streams, mixed before a block and spread after it by weights that the streams themselves give.
//!
//! `z = Fn rms(h)` over all streams together; `pre, post, C = mhc_split(z)`; the block sees `sum of pre_s h_s`; after it
//! `h'_s = post_s y + sum of C[r, s] h_r`.

use coli_plugin_api::describe::{Description, View, WeightRef};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::mhc_split::MhcSplitParams;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::{matmul, mhc_split, norm, spread};

/// The sizes and constants of a model's streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Streams {
    /// How many.
    pub count: u32,
    /// Numbers of each.
    pub width: u32,
    /// Inside the norm of all streams.
    pub norm_eps: f32,
    /// Of the split.
    pub eps: f32,
    /// Of the split.
    pub iterations: u32,
}

/// One place where streams are mixed and spread.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    function: WeightRef,
    scale: WeightRef,
    base: WeightRef,
}

/// What a site says for a step's rows.
#[derive(Debug, Clone, Copy)]
pub struct Split {
    /// Weights that mix the streams into a block's input.
    pub pre: Operand,
    post: Operand,
    comb: Operand,
}

impl Streams {
    /// Numbers of all streams together.
    pub fn total(&self) -> u32 {
        self.count.saturating_mul(self.width)
    }
}

impl Site {
    /// Describes a site whose tensors are `<stored>_fn`, `<stored>_scale` and `<stored>_base`.
    pub fn describe(d: &mut Description, role: &str, streams: &Streams, stored: &str) -> Self {
        let n = streams.count;
        let numbers = 2 * n + n * n;
        let tensor = |what: &str| View::tensor(format!("{stored}_{what}"));
        Self {
            function: d.matrix(format!("{role}.fn"), numbers, streams.total(), tensor("fn")),
            scale: d.vector(format!("{role}.scale"), 3, tensor("scale")),
            base: d.vector(format!("{role}.base"), numbers, tensor("base")),
        }
    }

    /// Records what the site says of the streams `h`.
    pub fn split(&self, r: &mut Recorder, streams: &Streams, h: Operand) -> Split {
        let x = norm::record(r, h, &[], NormParams::rms(streams.norm_eps).unweighted());
        let z = matmul::record_exact(r, x, self.function);
        let params = MhcSplitParams { streams: streams.count, eps: streams.eps, iterations: streams.iterations };
        let (pre, post, comb) = mhc_split::record(r, z, self.scale, self.base, params);
        Split { pre, post, comb }
    }
}

impl Split {
    /// Records the streams after a block that gave `y`.
    pub fn spread(&self, r: &mut Recorder, streams: &Streams, h: Operand, y: Operand) -> Operand {
        spread::record(r, h, y, self.post, Some(self.comb), streams.count)
    }
}
