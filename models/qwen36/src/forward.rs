//! The pass, segment by segment.

use coli_plugin_api::describe::{Activation, SegmentName, WeightRef};
use coli_plugin_api::program::{Builtin, Ty, ports};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::attend::AttendParams;
use coli_shaders::ops::delta::{DeltaHeads, DeltaParams, DeltaRate};
use coli_shaders::ops::ew::{EwKind, EwParams};
use coli_shaders::ops::glu::GluParams;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::rope::{RopeParams, RopeStyle};
use coli_shaders::ops::route::RouteParams;
use coli_shaders::ops::short_conv::ShortConvParams;
use coli_shaders::ops::{append, attend, delta, ew, gather, matmul, moe, norm, rope, route, sample, short_conv, take};

use crate::config::{Config, Linear};
use crate::draft;
use crate::weights::{Attention, Delta, Feed, Layer, Mixer, Model};

/// Added to the sum of squares of q and k of the delta rule.
const L2_EPS: f32 = 1e-6;

pub(crate) fn record(config: &Config, model: &Model, segment: SegmentName, r: &mut Recorder) -> Result<(), String> {
    match (segment, &model.draft) {
        (SegmentName::Embed, _) => embed(model, r),
        (SegmentName::Layer(index), _) => {
            let layer = model.layers.get(index as usize).ok_or_else(|| format!("there is no layer {index}"))?;
            let tokens = r.tokens();
            let h = r.port_in(ports::STREAM, tokens, Ty::F32, config.hidden);
            let h = block(config, layer, h, r);
            r.port_out(ports::STREAM, h);
        }
        (SegmentName::Head, _) => head(config, model, r),
        (SegmentName::Draft(0), Some(draft)) => draft::record(config, model, draft, r),
        (other, _) => return Err(format!("this model has no segment `{other}`")),
    }
    Ok(())
}

/// The norm of whole rows, whose weights the newer models store as distances from 1.
pub(crate) fn rms(config: &Config, r: &mut Recorder, x: Operand, weight: WeightRef) -> Operand {
    norm::record(r, x, &[weight], plain_or_centred(config, NormParams::rms(config.norm_eps)))
}

fn plain_or_centred(config: &Config, params: NormParams) -> NormParams {
    if config.newer && !config.converted { params.zero_centred() } else { params }
}

fn embed(model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let token = r.builtin(tokens, Builtin::Token, 1);
    let h = gather::record(r, token, model.embed);
    r.port_out(ports::STREAM, h);
}

/// A layer of the model or of the draft head.
pub(crate) fn block(config: &Config, layer: &Layer, h: Operand, r: &mut Recorder) -> Operand {
    let x = rms(config, r, h, layer.mixer_norm);
    let mixed = match (&layer.mixer, &config.linear) {
        (Mixer::Delta(delta), Some(linear)) => delta_rule(config, delta, linear, x, r),
        (Mixer::Delta(_), None) => unreachable!("a delta rule layer is described from these sizes"),
        (Mixer::Attention(attention), _) => attended(config, attention, x, r),
    };
    let h = ew::add(r, h, mixed);
    let x = rms(config, r, h, layer.mlp_norm);
    let y = feed(config, &layer.feed, x, r);
    ew::add(r, h, y)
}

fn attended(config: &Config, weights: &Attention, x: Operand, r: &mut Recorder) -> Operand {
    let sizes = &config.attention;
    let (q, k, v) = (matmul::record(r, x, weights.q), matmul::record(r, x, weights.k), matmul::record(r, x, weights.v));
    let head = plain_or_centred(config, NormParams::rms(config.norm_eps));
    let q = norm::record(r, q, &[weights.q_norm], head.per_head(sizes.heads));
    let k = norm::record(r, k, &[weights.k_norm], head.per_head(sizes.kv_heads));
    let turn = RopeParams::part(RopeStyle::Half, sizes.head_width, 0, sizes.rotary_width, sizes.rope_theta);
    let rpos = r.builtin(x.domain, Builtin::RotaryPosition, 1);
    let (q, k) = (rope::record(r, q, rpos, turn), rope::record(r, k, rpos, turn));
    append::record(r, &[k, v], weights.kv);
    let scale = 1.0 / (sizes.head_width as f32).sqrt();
    let params = AttendParams::causal(sizes.heads, sizes.kv_heads, sizes.head_width, sizes.head_width, scale);
    let mut a = attend::record(r, q, weights.kv, params);
    if let Some(gate) = weights.gate {
        let gate = matmul::record(r, x, gate);
        a = ew::mul_sigmoid(r, a, gate);
    }
    matmul::record(r, a, weights.o)
}

fn delta_rule(config: &Config, weights: &Delta, sizes: &Linear, x: Operand, r: &mut Recorder) -> Operand {
    let u = matmul::record(r, x, weights.qkv);
    let u = short_conv::record(r, u, weights.conv, weights.window, ShortConvParams::silu(sizes.taps));
    let (keys, values) = (sizes.keys(), sizes.values());
    let (q, k, v) = (u.cols(0, keys), u.cols(keys, keys), u.cols(2 * keys, values));
    let scale = 1.0 / (sizes.key_width as f32).sqrt();
    let q = norm::record(r, q, &[], NormParams::l2(sizes.key_heads, L2_EPS, scale));
    let k = norm::record(r, k, &[], NormParams::l2(sizes.key_heads, L2_EPS, 1.0));
    let decay = matmul::record_exact(r, x, weights.decay);
    let beta = matmul::record_exact(r, x, weights.beta);
    let params = match config.converted {
        true => DeltaParams { rate: DeltaRate::Negated, head_map: DeltaHeads::Tiled, ..DeltaParams::softplus(sizes.key_heads) },
        false => DeltaParams::softplus(sizes.key_heads),
    };
    let y = delta::record(r, q, k, v, decay, beta, weights.a, weights.dt, weights.state, params);
    // This norm's weight is stored as it is in all models.
    let y = norm::record(r, y, &[weights.norm], NormParams::rms(config.norm_eps).per_head(sizes.value_heads));
    let z = matmul::record(r, x, weights.z);
    let y = ew::mul_silu(r, y, z);
    matmul::record(r, y, weights.o)
}

fn feed(config: &Config, feed: &Feed, x: Operand, r: &mut Recorder) -> Operand {
    let silu = GluParams::of(Activation::Silu);
    let (router, group, layer, shared) = match feed {
        Feed::Dense(mlp) => return mlp.record(r, x, silu),
        Feed::Routed { router, group, layer, shared } => (*router, *group, *layer, shared),
    };
    let (used, renormalise) = config.routed.map_or((1, true), |routed| (routed.used, routed.renormalise));
    let scores = matmul::record_exact(r, x, router);
    let (ids, weights) = route::record(r, scores, RouteParams::softmax(used, renormalise));
    let y = moe::record(r, x, ids, weights, group, layer);
    let Some(shared) = shared else { return y };
    let s = shared.mlp.record(r, x, silu);
    let gate = matmul::record(r, x, shared.gate);
    let s = ew::with(r, &[s, gate], EwParams::of(EwKind::MulSigmoid).group(1));
    ew::add(r, y, s)
}

fn head(config: &Config, model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, config.hidden);
    let x = if model.draft.is_some() {
        // A draft head reads the normed rows of a whole prompt.
        let normed = rms(config, r, h, model.norm);
        r.port_out(draft::NORMED, normed);
        take::record(r, normed)
    } else {
        let wanted = take::record(r, h);
        rms(config, r, wanted, model.norm)
    };
    r.port_out(ports::HIDDEN, x);
    let logits = matmul::record(r, x, model.head);
    r.port_out(ports::LOGITS, logits);
    let sampled = sample::record(r, logits);
    r.port_out(ports::SAMPLED, sampled);
}
