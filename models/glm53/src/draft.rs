//! The draft head: from a row after the final norm and the token that follows it, scores for the token after that one.

use coli_plugin_api::program::{Builtin, Ty, ports};
use coli_plugin_api::recorder::Recorder;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::{concat, ew, gather, matmul, norm, sample, take};

use crate::config::Config;
use crate::forward::feed;
use crate::mixers;
use crate::weights::{Draft, Model};

/// The port of normed rows of the whole step.
pub(crate) const NORMED: &str = "normed";

pub(crate) fn record(config: &Config, model: &Model, draft: &Draft, r: &mut Recorder) {
    let tokens = r.tokens();
    let rms = NormParams::rms(config.norm_eps);
    let hidden = r.port_in(NORMED, tokens, Ty::F32, config.hidden);
    let next = r.builtin(tokens, Builtin::NextToken, 1);
    let embedded = gather::record(r, next, model.embed);
    let embedded = norm::record(r, embedded, &[draft.embed_norm], rms);
    let hidden = norm::record(r, hidden, &[draft.hidden_norm], rms);
    let both = concat::record(r, &[embedded, hidden]);
    let h = matmul::record(r, both, draft.joint);
    let x = norm::record(r, h, &[draft.mixer_norm], rms);
    let y = mixers::sparse(config, &draft.mixer, x, r);
    let h = ew::add(r, h, y);
    let x = norm::record(r, h, &[draft.mlp_norm], rms);
    let y = feed(config, &draft.feed, x, r);
    let h = ew::add(r, h, y);
    let wanted = take::record(r, h);
    let x = norm::record(r, wanted, &[draft.norm], rms);
    let logits = matmul::record(r, x, model.head);
    r.port_out(ports::DRAFT_LOGITS, logits);
    let sampled = sample::record(r, logits);
    r.port_out(ports::DRAFT_SAMPLED, sampled);
}
