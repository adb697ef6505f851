//! The two kinds of layer: the delta rule, and attention over chosen latent rows.

use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::act::ActParams;
use coli_shaders::ops::attend::{AttendInput, AttendParams, AttendSource};
use coli_shaders::ops::delta::{DeltaParams, DeltaRate};
use coli_shaders::ops::index_topk::IndexTopkParams;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::pool::PoolParams;
use coli_shaders::ops::short_conv::ShortConvParams;
use coli_shaders::ops::{act, append, attend, delta, ew, index_topk, matmul, matmul_heads, norm, pool, short_conv};

use crate::config::Config;
use crate::weights::{Delta, Index, Sparse};

/// Of the norms of latent rows and index keys, which do not follow `rms_norm_eps`, and of q and k of the delta rule.
const SMALL_EPS: f32 = 1e-6;

/// Each key channel of a head decays by itself.
pub(crate) fn delta_rule(config: &Config, weights: &Delta, x: Operand, r: &mut Recorder) -> Operand {
    let sizes = config.delta;
    let [q, k, v] = weights.qkv.map(|(matrix, conv, window)| {
        let u = matmul::record(r, x, matrix);
        short_conv::record(r, u, conv, window, ShortConvParams::silu(sizes.taps))
    });
    let scale = 1.0 / (sizes.head_width as f32).sqrt();
    let q = norm::record(r, q, &[], NormParams::l2(sizes.heads, SMALL_EPS, scale));
    let k = norm::record(r, k, &[], NormParams::l2(sizes.heads, SMALL_EPS, 1.0));
    let [first, second] = weights.decay;
    let decay = matmul::record_exact(r, x, first);
    let decay = matmul::record_exact(r, decay, second);
    let beta = matmul::record_exact(r, x, weights.beta);
    let rate = if config.converted { DeltaRate::Negated } else { DeltaRate::Log };
    let params = DeltaParams { rate, ..DeltaParams::bounded(sizes.heads, sizes.bound) };
    let y = delta::record(r, q, k, v, decay, beta, weights.a, weights.dt, weights.state, params);
    let y = norm::record(r, y, &[weights.norm], NormParams::rms(config.norm_eps).per_head(sizes.heads));
    let [first, second] = weights.gate;
    let gate = matmul::record(r, x, first);
    let gate = matmul::record(r, gate, second);
    let y = ew::mul_sigmoid(r, y, gate);
    matmul::record(r, y, weights.o)
}

/// Keys and values are functions of one latent row, so q is taken to the latent's side and the sum of latent rows back to values.
pub(crate) fn sparse(config: &Config, weights: &Sparse, x: Operand, r: &mut Recorder) -> Operand {
    let (sizes, small) = (config.sparse, NormParams::rms(SMALL_EPS));
    let q = matmul::record(r, x, weights.q_down);
    let q = norm::record(r, q, &[weights.q_norm], small);
    let latent = matmul::record(r, x, weights.kv_down);
    let latent = norm::record(r, latent, &[weights.kv_norm], small);
    append::record(r, &[latent], weights.latent);
    let list = chosen(config, &weights.index, x, q, r);
    let q = matmul::record(r, q, weights.q_up);
    let q = matmul_heads::record(r, q, weights.k_up, sizes.heads, !config.converted);
    let scale = 1.0 / (sizes.key_width as f32).sqrt();
    let params = AttendParams::over(AttendSource::list(), sizes.heads, 1, sizes.kv_rank, sizes.kv_rank, scale);
    let a = attend::record_sources(r, q, &[AttendInput::list(weights.latent, list)], None, params);
    let a = matmul_heads::record(r, a, weights.v_up, sizes.heads, false);
    matmul::record(r, a, weights.o)
}

/// The positions of the best pools, and those after the last whole pool.
fn chosen(config: &Config, weights: &Index, x: Operand, latent_q: Operand, r: &mut Recorder) -> Operand {
    let sizes = config.index;
    let k = matmul::record(r, x, weights.k);
    let k = norm::record(r, k, &[weights.k_norm, weights.k_bias], NormParams::layer(SMALL_EPS));
    let gate = matmul::record(r, x, weights.pool_gate);
    let pooled = pool::record(r, k, Some(gate), Some(weights.pool_ape), weights.window, PoolParams::softmax(sizes.pool, false));
    append::record(r, &[pooled], weights.keys);
    let q = matmul::record(r, latent_q, weights.q);
    let head_weights = matmul::record_exact(r, x, weights.head_weights);
    let head_weights = act::record(r, head_weights, None, ActParams::scale(1.0 / (sizes.heads as f32).sqrt()));
    let scale = 1.0 / (sizes.head_width as f32).sqrt();
    let params = IndexTopkParams::positions(sizes.heads, sizes.chosen / sizes.pool, scale, sizes.pool);
    index_topk::record(r, q, Some(head_weights), None, weights.keys, params).0
}
