//! The pass, segment by segment.
//!
//! The weights that mix the streams into a block's input are those of the site before it: the port [`PRE`] carries them from layer to
//! layer. The first block sees the first stream, which is the token's row.

use coli_plugin_api::describe::{Activation, SegmentName};
use coli_plugin_api::program::{Builtin, Input, InputSource, Ty, ports};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::act::{ActKind, ActParams};
use coli_shaders::ops::glu::GluParams;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::route::RouteParams;
use coli_shaders::ops::{act, concat, dot, ew, gather, matmul, mix, moe, norm, route, sample, spread, take};

use crate::attention;
use crate::config::Config;
use crate::weights::{EXPERTS, Layer, Model, Ngrams};

/// How the inputs of n-gram rows are named, before the number of their table.
pub(crate) const NGRAMS: &str = "ngrams.";
/// The port of the last site's mixing weights.
const PRE: &str = "pre";

pub(crate) fn record(config: &Config, model: &Model, segment: SegmentName, r: &mut Recorder) -> Result<(), String> {
    match segment {
        SegmentName::Embed => embed(config, model, r),
        SegmentName::Layer(index) => {
            let layer = model.layers.get(index as usize).ok_or_else(|| format!("there is no layer {index}"))?;
            block(config, layer, index, r);
        }
        SegmentName::Head => head(config, model, r),
        other => return Err(format!("deepseek_v41 has no segment `{other}`")),
    }
    Ok(())
}

fn embed(config: &Config, model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let token = r.builtin(tokens, Builtin::Token, 1);
    let x = gather::record(r, token, model.embed);
    let h = concat::record(r, &vec![x; config.streams.count as usize]);
    r.port_out(ports::STREAM, h);
}

fn block(config: &Config, layer: &Layer, index: u32, r: &mut Recorder) {
    let tokens = r.tokens();
    let (streams, rms) = (&config.streams, NormParams::rms(config.norm_eps));
    let mut h = r.port_in(ports::STREAM, tokens, Ty::F32, streams.total());
    if let Some(table) = &layer.ngrams {
        h = with_ngrams(config, table, h, r);
    }

    let split = layer.attention_site.split(r, streams, h);
    let x = if index == 0 {
        h.cols(0, streams.width)
    } else {
        let pre = r.port_in(PRE, tokens, Ty::F32, streams.count);
        mix::record(r, h, Some(pre), streams.count)
    };
    let x = norm::record(r, x, &[layer.attention_norm], rms);
    let y = attention::record(config, &layer.attention, index, x, r);
    let h = split.spread(r, streams, h, y);
    let pre = split.pre;

    let split = layer.mlp_site.split(r, streams, h);
    let x = mix::record(r, h, Some(pre), streams.count);
    let x = norm::record(r, x, &[layer.mlp_norm], rms);
    let y = routed(config, layer, index, x, r);
    let h = split.spread(r, streams, h, y);
    r.port_out(ports::STREAM, h);
    r.port_out(PRE, split.pre);
}

/// Adds to each stream the value of the last tokens' n-grams, as far as the stream agrees with its key.
fn with_ngrams(config: &Config, weights: &Ngrams, h: Operand, r: &mut Recorder) -> Operand {
    let (streams, Some(engram)) = (&config.streams, &config.engram) else { return h };
    let rms = NormParams::rms(config.norm_eps).per_head(streams.count).full();
    let source = InputSource::Ids { window: engram.max_ngram as u16 };
    let width = (engram.max_ngram - 1) * engram.heads;
    let ids = r.input(Input { name: format!("{NGRAMS}{}", weights.number), domain: h.domain, ty: Ty::I32, width, source });
    let rows = gather::record(r, ids, weights.table);
    let kv = matmul::record(r, rows, weights.kv);
    let (key, value) = (kv.cols(0, streams.total()), kv.cols(streams.total(), streams.width));
    let query = norm::record(r, h, &[weights.q_norm], rms);
    let key = norm::record(r, key, &[weights.k_norm], rms);
    let gate = dot::record(r, query, key, streams.count, 1.0 / (streams.width as f32).sqrt());
    let gate = act::record(r, gate, None, ActParams::of(ActKind::SignsqrtSigmoid));
    spread::record(r, h, value, gate, None, streams.count)
}

fn routed(config: &Config, layer: &Layer, index: u32, x: Operand, r: &mut Recorder) -> Operand {
    let sizes = &config.routed;
    let scores = matmul::record_exact(r, x, layer.router);
    let (ids, weights) = route::record_biased(r, scores, layer.router_bias, RouteParams::sqrt_softplus(sizes.used, sizes.scale));
    let y = moe::record(r, x, ids, weights, EXPERTS, index);
    let shared = layer.shared.record(r, x, GluParams::of(Activation::SiluClamp { limit: sizes.limit }));
    ew::add(r, y, shared)
}

fn head(config: &Config, model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let streams = &config.streams;
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, streams.total());
    let pre = r.port_in(PRE, tokens, Ty::F32, streams.count);
    let (h, pre) = (take::record(r, h), take::record(r, pre));
    let x = mix::record(r, h, Some(pre), streams.count);
    let x = norm::record(r, x, &[model.norm], NormParams::rms(config.norm_eps));
    r.port_out(ports::HIDDEN, x);
    let logits = matmul::record(r, x, model.head);
    r.port_out(ports::LOGITS, logits);
    let sampled = sample::record(r, logits);
    r.port_out(ports::SAMPLED, sampled);
}
