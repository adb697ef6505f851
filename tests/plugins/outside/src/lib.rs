//! `outside_tiny`: an embedding, one layer that adds a decaying sum of what came before, and a linear head.
//!
//! The layer's mixing is an op of this plugin's own, [`decay`], and so is what stands before the head, [`turn`], which has a device form.

mod decay;
mod turn;

use coli_plugin_api::describe::{DescribeRequest, Description, Keep, RowPart, SegmentName, State, StateKind, View, WeightRef};
use coli_plugin_api::own_op::OwnOp;
use coli_plugin_api::program::{Builtin, StateId, Ty, ports};
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::serde_json::Value;
use coli_plugin_api::{Log, Plugin, export_plugin};
use coli_shaders::contract::own;
use coli_shaders::ops::{ew, gather, matmul, sample, take};

/// One opened model.
pub struct Outside {
    width: u32,
    decay: f32,
    turn: u32,
    embed: WeightRef,
    gain: WeightRef,
    turn_gain: WeightRef,
    head: WeightRef,
    past: StateId,
    description: Description,
}

impl Plugin for Outside {
    const ID: &'static str = "outside";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn open(request: &DescribeRequest, _: Log) -> Result<Self, String> {
        let config = &request.config;
        let (width, vocab) = (size(config, "width")?, size(config, "vocab")?);
        let decay = config["decay"].as_f64().ok_or("config.json: `decay`: expected a number")? as f32;
        let turn = size(config, "turn")?;
        let mut d = Description { context_max: size(config, "context")?, vocab, ..Description::default() };
        let embed = d.matrix("embed", vocab, width, View::tensor("embed"));
        let gain = d.vector("layer.0.gain", width, View::tensor("gain"));
        let turn_gain = d.vector("turn_gain", width, View::tensor("turn_gain"));
        let head = d.matrix("head", vocab, width, View::tensor("head"));
        let kind = StateKind::Rows { parts: vec![RowPart { width, may_round: false }], stride: 1, keep: Keep::All };
        let past = d.state(State { role: "layer.0.past".into(), owner: SegmentName::Layer(0), shared: false, kind });
        d.segments = vec![SegmentName::Embed, SegmentName::Layer(0), SegmentName::Head];
        Ok(Self { width, decay, turn, embed, gain, turn_gain, head, past, description: d })
    }

    fn description(&self) -> Description {
        self.description.clone()
    }

    fn record(&self, segment: SegmentName, r: &mut Recorder) -> Result<(), String> {
        let tokens = r.tokens();
        if segment == SegmentName::Embed {
            let token = r.builtin(tokens, Builtin::Token, 1);
            let h = gather::record(r, token, self.embed);
            r.port_out(ports::STREAM, h);
            return Ok(());
        }
        let h = r.port_in(ports::STREAM, tokens, Ty::F32, self.width);
        if segment == SegmentName::Layer(0) {
            let y = decay::record(r, h, self.gain, self.past, self.decay);
            let h = ew::add(r, h, y);
            r.port_out(ports::STREAM, h);
        } else {
            let x = take::record(r, h);
            r.port_out(ports::HIDDEN, x);
            let x = turn::record(r, x, self.turn_gain, self.turn);
            let logits = matmul::record(r, x, self.head);
            r.port_out(ports::LOGITS, logits);
            let sampled = sample::record(r, logits);
            r.port_out(ports::SAMPLED, sampled);
        }
        Ok(())
    }

    fn own_ops() -> Vec<Box<dyn OwnOp>> {
        vec![own::<decay::Decay>(), own::<turn::Turn>()]
    }
}

fn size(config: &Value, key: &str) -> Result<u32, String> {
    let value = config[key].as_u64().filter(|value| (1..=4096).contains(value));
    value.map(|value| value as u32).ok_or_else(|| format!("config.json: `{key}`: expected 1 to 4096"))
}

export_plugin!(Outside);
