//! The pass, segment by segment.

use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::{Builtin, Ty, ports};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::attend::AttendParams;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::rope::{RopeParams, RopeStyle};
use coli_shaders::ops::route::RouteParams;
use coli_shaders::ops::{append, attend, ew, gather, matmul, moe, norm, rope, route, sample, take};

use crate::config::Config;
use crate::weights::{Layer, Model};

pub(crate) fn record(config: &Config, model: &Model, segment: SegmentName, r: &mut Recorder) -> Result<(), String> {
    match segment {
        SegmentName::Embed => embed(model, r),
        SegmentName::Layer(index) => {
            let layer = model.layers.get(index as usize).ok_or_else(|| format!("there is no layer {index}"))?;
            block(config, model, layer, index, r);
        }
        SegmentName::Head => head(config, model, r),
        other => return Err(format!("olmoe has no segment `{other}`")),
    }
    Ok(())
}

fn embed(model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let token = r.builtin(tokens, Builtin::Token, 1);
    let h = gather::record(r, token, model.embed);
    r.port_out(ports::STREAM, h);
}

fn block(config: &Config, model: &Model, layer: &Layer, index: u32, r: &mut Recorder) {
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, config.hidden);
    let rms = NormParams::rms(config.norm_eps);

    let x = norm::record(r, h, &[layer.attention_norm], rms);
    let attended = attention(config, layer, x, r);
    let h = ew::add(r, h, attended);

    let x = norm::record(r, h, &[layer.mlp_norm], rms);
    let scores = matmul::record_exact(r, x, layer.router);
    let (ids, weights) = route::record(r, scores, RouteParams::softmax(config.experts_used, config.renormalise));
    let y = moe::record(r, x, ids, weights, model.experts, index);
    let h = ew::add(r, h, y);
    r.port_out(ports::STREAM, h);
}

/// q and k are normed over all heads together, before they are rotated.
fn attention(config: &Config, layer: &Layer, x: Operand, r: &mut Recorder) -> Operand {
    let rms = NormParams::rms(config.norm_eps);
    let (q, k, v) = (matmul::record(r, x, layer.q), matmul::record(r, x, layer.k), matmul::record(r, x, layer.v));
    let q = norm::record(r, q, &[layer.q_norm], rms);
    let k = norm::record(r, k, &[layer.k_norm], rms);
    let turn = RopeParams::whole(RopeStyle::Half, config.head_width, config.rope_theta);
    let rpos = r.builtin(x.domain, Builtin::RotaryPosition, 1);
    let q = rope::record(r, q, rpos, turn);
    let k = rope::record(r, k, rpos, turn);
    append::record(r, &[k, v], layer.kv);
    let scale = 1.0 / (config.head_width as f32).sqrt();
    let params = AttendParams::causal(config.heads, config.kv_heads, config.head_width, config.head_width, scale);
    let a = attend::record(r, q, layer.kv, params);
    matmul::record(r, a, layer.o)
}

fn head(config: &Config, model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, config.hidden);
    let wanted = take::record(r, h);
    let x = norm::record(r, wanted, &[model.norm], NormParams::rms(config.norm_eps));
    r.port_out(ports::HIDDEN, x);
    let logits = matmul::record(r, x, model.head);
    r.port_out(ports::LOGITS, logits);
    let sampled = sample::record(r, logits);
    r.port_out(ports::SAMPLED, sampled);
}
