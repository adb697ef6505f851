//! The pass, segment by segment.

use coli_plugin_api::describe::{Activation, SegmentName};
use coli_plugin_api::program::{Builtin, Ty, ports};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::glu::GluParams;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::route::RouteParams;
use coli_shaders::ops::{concat, ew, gather, matmul, mix, moe, norm, route, sample, take};

use crate::config::Config;
use crate::weights::{Feed, Layer, Mixer, Model};
use crate::{draft, mixers};

pub(crate) fn record(config: &Config, model: &Model, segment: SegmentName, r: &mut Recorder) -> Result<(), String> {
    match (segment, &model.draft) {
        (SegmentName::Embed, _) => embed(config, model, r),
        (SegmentName::Layer(index), _) => {
            let layer = model.layers.get(index as usize).ok_or_else(|| format!("there is no layer {index}"))?;
            block(config, layer, r);
        }
        (SegmentName::Head, _) => head(config, model, r),
        (SegmentName::Draft(0), Some(draft)) => draft::record(config, model, draft, r),
        (other, _) => return Err(format!("glm53 has no segment `{other}`")),
    }
    Ok(())
}

/// All streams begin as the token's row.
fn embed(config: &Config, model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let token = r.builtin(tokens, Builtin::Token, 1);
    let x = gather::record(r, token, model.embed);
    let h = concat::record(r, &vec![x; config.streams.count as usize]);
    r.port_out(ports::STREAM, h);
}

fn block(config: &Config, layer: &Layer, r: &mut Recorder) {
    let tokens = r.tokens();
    let (streams, rms) = (&config.streams, NormParams::rms(config.norm_eps));
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, streams.total());

    let split = layer.mixer_site.split(r, streams, h);
    let x = mix::record(r, h, Some(split.pre), streams.count);
    let x = norm::record(r, x, &[layer.mixer_norm], rms);
    let y = match &layer.mixer {
        Mixer::Delta(delta) => mixers::delta_rule(config, delta, x, r),
        Mixer::Sparse(sparse) => mixers::sparse(config, sparse, x, r),
    };
    let h = split.spread(r, streams, h, y);

    let split = layer.mlp_site.split(r, streams, h);
    let x = mix::record(r, h, Some(split.pre), streams.count);
    let x = norm::record(r, x, &[layer.mlp_norm], rms);
    let y = feed(config, &layer.feed, x, r);
    let h = split.spread(r, streams, h, y);
    r.port_out(ports::STREAM, h);
}

pub(crate) fn feed(config: &Config, feed: &Feed, x: Operand, r: &mut Recorder) -> Operand {
    let act = GluParams::of(Activation::SiluClamp { limit: config.limit });
    match feed {
        Feed::Dense(mlp) => mlp.record(r, x, act),
        Feed::Routed { router, bias, group, layer, shared } => {
            let sizes = &config.routed;
            let scores = matmul::record_exact(r, x, *router);
            let params = RouteParams::sigmoid(sizes.used, sizes.scale).grouped(sizes.groups, sizes.groups_kept);
            let (ids, weights) = route::record_biased(r, scores, *bias, params);
            let y = moe::record(r, x, ids, weights, *group, *layer);
            let s = shared.record(r, x, act);
            ew::add(r, y, s)
        }
    }
}

/// The streams' mean is what is normed at the end.
fn head(config: &Config, model: &Model, r: &mut Recorder) {
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, config.streams.total());
    let rms = NormParams::rms(config.norm_eps);
    let x = if model.draft.is_some() {
        // A draft head reads the normed rows of a whole prompt.
        let x = mix::record(r, h, None, config.streams.count);
        let normed = norm::record(r, x, &[model.norm], rms);
        r.port_out(draft::NORMED, normed);
        take::record(r, normed)
    } else {
        let wanted = take::record(r, h);
        let x = mix::record(r, wanted, None, config.streams.count);
        norm::record(r, x, &[model.norm], rms)
    };
    r.port_out(ports::HIDDEN, x);
    let logits = matmul::record(r, x, model.head);
    r.port_out(ports::LOGITS, logits);
    let sampled = sample::record(r, logits);
    r.port_out(ports::SAMPLED, sampled);
}
