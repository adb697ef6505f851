//! The draft head: from a row after the final norm and the token that follows it, scores for the token after that one.

use coli_plugin_api::program::{Builtin, Ty, ports};
use coli_plugin_api::recorder::Recorder;
use coli_shaders::ops::{concat, gather, matmul, sample, take};

use crate::config::Config;
use crate::forward::{block, rms};
use crate::weights::{Draft, Model};

/// The port of normed rows of the whole step.
pub(crate) const NORMED: &str = "normed";

pub(crate) fn record(config: &Config, model: &Model, draft: &Draft, r: &mut Recorder) {
    let tokens = r.tokens();
    let hidden = r.port_in(NORMED, tokens, Ty::F32, config.hidden);
    let next = r.builtin(tokens, Builtin::NextToken, 1);
    let embedded = gather::record(r, next, model.embed);
    let embedded = rms(config, r, embedded, draft.embed_norm);
    let hidden = rms(config, r, hidden, draft.hidden_norm);
    let both = concat::record(r, &[embedded, hidden]);
    let h = matmul::record(r, both, draft.joint);
    let h = block(config, &draft.layer, h, r);
    let wanted = take::record(r, h);
    let x = rms(config, r, wanted, draft.norm);
    let logits = matmul::record(r, x, model.head);
    r.port_out(ports::DRAFT_LOGITS, logits);
    let sampled = sample::record(r, logits);
    r.port_out(ports::DRAFT_SAMPLED, sampled);
}
