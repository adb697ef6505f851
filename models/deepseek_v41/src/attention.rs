//! Attention over the last positions and over chosen compressed rows, in one softmax. K and V are the same row; it is turned by its
//! position, so what a head gives is turned back by the row's own.

use coli_plugin_api::program::{Builtin, Ty};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::act::ActParams;
use coli_shaders::ops::attend::{AttendInput, AttendParams, AttendSource};
use coli_shaders::ops::index_topk::IndexTopkParams;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::pool::PoolParams;
use coli_shaders::ops::rope::{RopeParams, RopeStyle};
use coli_shaders::ops::{act, append, attend, index_topk, matmul, matmul_heads, norm, pool, rope};

use crate::config::{Candidates, Compressed, Config};
use crate::weights::{Attention, Compressor, Index, Shared};

/// The port of chosen compressed rows, for the layers that do not choose.
const LIST: &str = "list";
/// The port of candidate blocks, for later layers that choose.
const CANDIDATES: &str = "candidates";

pub(crate) fn record(config: &Config, weights: &Attention, index: u32, x: Operand, r: &mut Recorder) -> Operand {
    let sizes = &config.attention;
    let rms = NormParams::rms(config.norm_eps);
    let kind = config.layers.get(index as usize).and_then(|layer| layer.compressed);
    let rpos = r.builtin(x.domain, Builtin::RotaryPosition, 1);
    let turn = turn(config, sizes.head_width, kind.is_some());

    let latent = matmul::record(r, x, weights.q_down);
    let latent = norm::record(r, latent, &[weights.q_norm], rms);
    let q = matmul::record(r, latent, weights.q_up);
    let q = rope::record(r, q, rpos, turn);
    let kv = matmul::record(r, x, weights.kv);
    let kv = norm::record(r, kv, &[weights.kv_norm], rms);
    let kv = rope::record(r, kv, rpos, turn);
    append::record(r, &[kv], weights.window);

    let scale = 1.0 / (sizes.head_width as f32).sqrt();
    let window = AttendSource::rows_window(sizes.window);
    let mut params = AttendParams::over(window, sizes.heads, 1, sizes.head_width, sizes.head_width, scale);
    let mut inputs = vec![AttendInput::rows(weights.window)];
    if let (Some(kind), Some(shared)) = (kind, weights.compressed) {
        if let Some(compressor) = &weights.makes {
            compress(config, compressor, shared, kind.ratio, x, r);
        }
        let list = list(config, weights.chooses.as_ref(), shared, &kind, x, latent, r);
        inputs.push(AttendInput::list(shared.rows, list));
        params = params.and(AttendSource::list());
    }
    let a = attend::record_sources(r, q, &inputs, Some(weights.sink), params);
    let a = rope::record(r, a, rpos, turn.inverse());
    let a = matmul_heads::record(r, a, weights.o_down, sizes.o_groups, false);
    matmul::record(r, a, weights.o_up)
}

/// The last columns of heads turn; layers with compressed rows stretch another base.
fn turn(config: &Config, head_width: u32, compressed: bool) -> RopeParams {
    let sizes = &config.attention;
    let theta = if compressed { sizes.compressed_theta } else { sizes.theta };
    let turn = RopeParams::part(RopeStyle::Pair, head_width, head_width - sizes.rotary_width, head_width, theta);
    let yarn = sizes.yarn;
    if compressed { turn.yarn(yarn.factor, yarn.context, yarn.fast, yarn.slow) } else { turn }
}

/// Stores a row for each group of positions, and its index key, turned by the group's first position.
fn compress(config: &Config, weights: &Compressor, shared: Shared, ratio: u32, x: Operand, r: &mut Recorder) {
    let rms = NormParams::rms(config.norm_eps);
    let mut latent = matmul::record(r, x, weights.kv);
    if let Some((gate, waiting)) = weights.pooled {
        let gate = matmul::record(r, x, gate);
        latent = pool::record(r, latent, Some(gate), None, waiting, PoolParams::softmax(ratio, false));
    }
    let latent = norm::record(r, latent, &[weights.norm], rms);
    let rpos = r.builtin(x.domain, Builtin::RotaryPosition, 1);
    let row = rope::record(r, latent, rpos, turn(config, config.attention.head_width, true).grouped(ratio));
    append::record(r, &[row], shared.rows);
    // Of the row before it was turned.
    let key = matmul::record(r, latent, weights.key);
    let key = norm::record(r, key, &[weights.key_norm], rms);
    let key = rope::record(r, key, rpos, turn(config, config.index.head_width, true).grouped(ratio));
    append::record(r, &[key], shared.keys);
}

/// The chosen compressed rows.
fn list(
    config: &Config,
    weights: Option<&Index>,
    shared: Shared,
    kind: &Compressed,
    x: Operand,
    latent: Operand,
    r: &mut Recorder,
) -> Operand {
    let sizes = &config.index;
    let (chosen, (block, blocks)) = (config.chosen(kind.ratio), config.candidates(kind.ratio));
    let Some(weights) = weights else { return r.port_in(LIST, x.domain, Ty::I32, chosen) };
    let q = matmul::record(r, latent, weights.q);
    let rpos = r.builtin(x.domain, Builtin::RotaryPosition, 1);
    let q = rope::record(r, q, rpos, turn(config, sizes.head_width, true));
    let head_weights = matmul::record_exact(r, x, weights.head_weights);
    let scale = 1.0 / (sizes.heads as f32 * sizes.head_width as f32).sqrt();
    let head_weights = act::record(r, head_weights, None, ActParams::scale(scale));
    let mut params = IndexTopkParams::rows(sizes.heads, chosen, 1.0, kind.ratio);
    let mut given = None;
    match kind.candidates {
        Candidates::No => {}
        Candidates::Gives => (params.cand_block, params.cand_out) = (block, blocks),
        Candidates::Takes => {
            params.cand_block = block;
            given = Some(r.port_in(CANDIDATES, x.domain, Ty::I32, blocks));
        }
    }
    let (list, candidates) = index_topk::record(r, q, Some(head_weights), given, shared.keys, params);
    r.port_out(LIST, list);
    if let Some(candidates) = candidates {
        r.port_out(CANDIDATES, candidates);
    }
    list
}
