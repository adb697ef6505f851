//! A plugin that obeys its model's `config.json`: the key `behave` says which rule it breaks; without it, it works.
//!
//! The model is the smallest with every part that the rules are about: an embedding, layers of one attention head over the stream itself
//! with a state each, and a head. `tests/plugins/src/model.rs` writes such models and works out their logits.

use std::time::Duration;

use coli_plugin_api::describe::{DescribeRequest, Description, Keep, RowPart, SegmentName, State, StateKind, View, WeightRef};
use coli_plugin_api::program::{Access, Builtin, OperandRef, Source, StateId, Ty, ValueDef, ValueId, ports};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{Log, LogLevel, Plugin, export_plugin};
use coli_shaders::ops::attend::AttendParams;
use coli_shaders::ops::norm::{NormParams, Weighting};
use coli_shaders::ops::{append, attend, ew, gather, matmul, norm, sample, take};

/// One opened model.
struct Hostile {
    behave: String,
    width: u32,
    embed: WeightRef,
    layers: Vec<(WeightRef, StateId)>,
    head: WeightRef,
    description: Description,
}

impl Plugin for Hostile {
    const ID: &'static str = "hostile";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn open(request: &DescribeRequest, log: Log) -> Result<Self, String> {
        let config = &request.config;
        // Before it has looked at what the model has, as broken code may.
        if config["model_type"] == "ends" {
            std::process::abort();
        }
        let number = |key: &str| config[key].as_u64().and_then(|n| u32::try_from(n).ok()).ok_or_else(|| format!("no number `{key}`"));
        let (vocab, width, layers) = (number("vocab")?, number("width")?, number("layers")?);
        if config["model_type"] != "hostile" {
            return Err(format!("this plugin serves model type hostile, not {}", config["model_type"]));
        }
        let behave = config["behave"].as_str().unwrap_or_default().to_string();
        assert!(behave != "panic_open", "boom");
        if behave == "error_of_many_lines" {
            return Err(format!("first\nsecond\r\u{1b}[31m{}", "long ".repeat(1000)));
        }
        if behave == "log" {
            log.write(LogLevel::Warning, "first\nsecond");
        }
        if let Some(milliseconds) = config["sleep_ms"].as_u64() {
            std::thread::sleep(Duration::from_millis(milliseconds));
        }
        let mut d = Description { context_max: 64, vocab, ..Description::default() };
        let embed = d.matrix("embed", vocab, width, View::tensor("embed"));
        let layers = (0..layers).map(|index| layer(&mut d, index, width)).collect::<Vec<_>>();
        let head = d.matrix("head", vocab, width, View::tensor("head"));
        let names = (0..layers.len() as u32).map(SegmentName::Layer);
        d.segments = [SegmentName::Embed].into_iter().chain(names).chain([SegmentName::Head]).collect();
        Ok(Self { behave, width, embed, layers, head, description: d })
    }

    fn description(&self) -> Description {
        assert!(self.behave != "panic_description", "boom");
        self.description.clone()
    }

    fn record(&self, segment: SegmentName, r: &mut Recorder) -> Result<(), String> {
        match segment {
            SegmentName::Embed => {
                let tokens = r.tokens();
                let token = r.builtin(tokens, Builtin::Token, 1);
                let h = gather::record(r, token, self.embed);
                r.port_out(ports::STREAM, h);
            }
            SegmentName::Layer(index) => self.layer(index, r)?,
            SegmentName::Head => {
                let h = self.stream(r);
                let wanted = take::record(r, h);
                r.port_out(ports::HIDDEN, wanted);
                let logits = matmul::record(r, wanted, self.head);
                r.port_out(ports::LOGITS, logits);
                let sampled = sample::record(r, logits);
                r.port_out(ports::SAMPLED, sampled);
            }
            other => return Err(format!("there is no segment `{other}`")),
        }
        Ok(())
    }

    fn ids(&self, _: &str, window: &[u32]) -> Result<Vec<i64>, String> {
        assert!(self.behave != "panic_ids", "boom");
        Ok(window.iter().map(|id| i64::from(*id)).collect())
    }
}

/// A layer's matrix and its state.
fn layer(d: &mut Description, index: u32, width: u32) -> (WeightRef, StateId) {
    let name = format!("layer.{index}");
    let part = RowPart { width, may_round: false };
    let kind = StateKind::Rows { parts: vec![part, part], stride: 1, keep: Keep::All };
    let matrix = d.matrix(&name, width, width, View::tensor(&name));
    (matrix, d.state(State { role: format!("{name}.kv"), owner: SegmentName::Layer(index), shared: false, kind }))
}

impl Hostile {
    fn stream(&self, r: &mut Recorder) -> Operand {
        let tokens = r.tokens();
        r.port_in(ports::STREAM, tokens, Ty::F32, self.width)
    }

    /// `h + attention(x)` with `x = W h` as query, key and value.
    fn layer(&self, index: u32, r: &mut Recorder) -> Result<(), String> {
        let (matrix, state) = self.layers.get(index as usize).copied().ok_or_else(|| format!("there is no layer {index}"))?;
        let h = self.stream(r);
        let x = matmul::record(r, h, matrix);
        // The rule is broken in the last layer, so that all before it has been accepted by then.
        let (x, state) = if index as usize + 1 == self.layers.len() { self.misbehave(r, h, x, state)? } else { (x, state) };
        append::record(r, &[x, x], state);
        let a = attend::record(r, x, state, AttendParams::causal(1, 1, self.width, self.width, 1.0));
        let h = ew::add(r, h, a);
        r.port_out(ports::STREAM, h);
        Ok(())
    }

    fn misbehave(&self, r: &mut Recorder, h: Operand, x: Operand, state: StateId) -> Result<(Operand, StateId), String> {
        let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width: self.width }];
        let plain = NormParams { weighting: Weighting::None, ..NormParams::rms(1e-5) };
        let x = match self.behave.as_str() {
            "panic_record" => panic!("boom"),
            "error_record" => return Err("no way".into()),
            "unknown_op" => {
                let [y] = r.op(OpCall { name: "teleport@1", ins: &[x], outs: &outs, ..OpCall::default() });
                y
            }
            "unknown_version" => {
                let [y] = r.op(OpCall { name: "norm@77", ins: &[x], outs: &outs, ..OpCall::default() });
                y
            }
            // The head's matrix has a row for each token id, not for each column of the stream.
            "wrong_shape" => matmul::record(r, h, WeightRef { rows: self.width, ..self.head }),
            // The sum reads what only the op after it writes.
            "cycle" => {
                let OperandRef { source: Source::Value(ValueId(last)), .. } = x.at else { return Err("x is a value".into()) };
                let later = Operand { at: OperandRef { source: Source::Value(ValueId(last + 2)), ..x.at }, ..x };
                let sum = ew::add(r, x, later);
                ew::add(r, sum, x)
            }
            "unknown_value" => {
                let nowhere = Operand { at: OperandRef { source: Source::Value(ValueId(u32::MAX)), ..x.at }, ..x };
                ew::add(r, x, nowhere)
            }
            "unknown_weight" => {
                let id = coli_plugin_api::program::WeightId(u32::MAX);
                matmul::record(r, h, WeightRef { id, rows: self.width, cols: self.width })
            }
            "wrong_access" => {
                let [y] =
                    r.op(OpCall { name: "matmul@1", ins: &[h], outs: &outs, states: &[(state, Access::Update)], ..OpCall::default() });
                y
            }
            "parameter_out_of_range" => norm::record(r, x, &[], NormParams { eps: 2.0, ..plain }),
            "parameter_nan" => norm::record(r, x, &[], NormParams { eps: f32::NAN, ..plain }),
            "parameter_infinite" => norm::record(r, x, &[], NormParams { scale: f32::INFINITY, ..plain }),
            "parameters_too_long" => {
                let [y] = r.op(OpCall { name: "norm@1", ins: &[x], outs: &outs, params: vec![0; 999], ..OpCall::default() });
                y
            }
            "foreign_state" => return Ok((x, self.layers[0].1)),
            "unknown_state" => return Ok((x, StateId(u32::MAX))),
            _ => x,
        };
        Ok((x, state))
    }
}

export_plugin!(Hostile);
