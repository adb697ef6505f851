//! Tests of a plugin's model behind the guarded calls.

use super::*;
use coli_base::Kind;
use coli_plugin_api::boundary::new_object;
use coli_plugin_api::describe::Container;
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::{Log, Plugin};

/// Does what its configuration's `act` says.
struct Actor(String);

impl Plugin for Actor {
    const ID: &'static str = "actor";
    const VERSION: &'static str = "0.1.0";

    fn open(request: &DescribeRequest, _: Log) -> std::result::Result<Self, String> {
        let act = request.config["act"].as_str().ok_or("key `act`: expected text\n\u{1b}[2Jand more")?;
        Ok(Self(act.into()))
    }

    fn description(&self) -> Description {
        assert!(self.0 != "panic", "boom");
        Description { vocab: 7, context_max: 9, segments: vec![SegmentName::Embed], ..Description::default() }
    }

    fn record(&self, segment: SegmentName, recorder: &mut Recorder) -> std::result::Result<(), String> {
        if segment != SegmentName::Embed {
            return Err("x".repeat(10_000));
        }
        recorder.tokens();
        Ok(())
    }

    fn ids(&self, _: &str, window: &[u32]) -> std::result::Result<Vec<i64>, String> {
        Ok(vec![-1; window[0] as usize])
    }
}

fn model() -> PluginModel {
    PluginModel::of("actor", new_object::<Actor>(LogFn { write: write_log }).unwrap(), None)
}

fn request(act: serde_json::Value) -> DescribeRequest {
    DescribeRequest { container: Container::Hf, config: serde_json::json!({ "act": act }), tensors: vec![], tokenizer: None }
}

#[test]
fn replies_come_back_typed() {
    let model = model();
    let description = model.describe(&request("play".into())).unwrap();
    assert_eq!((description.vocab, description.context_max), (7, 9));
    assert!(codec::decode(&model.record(SegmentName::Embed).unwrap()).is_ok());
    assert_eq!(model.ids("window", &[3]).unwrap(), [-1, -1, -1]);
    assert_eq!(model.id(), "actor");
}

#[test]
fn a_plugins_error_is_one_clean_bounded_line_that_names_it() {
    let model = model();
    let error = model.describe(&request(3.into())).unwrap_err();
    assert_eq!((error.kind, error.text.as_str()), (Kind::Refused, "plugin actor: key `act`: expected text [2Jand more"));
    let error = self::model().describe(&request("panic".into())).unwrap_err();
    assert_eq!(error.text, "plugin actor: the plugin panicked in `describe` at host/plugins/src/model_tests.rs:23: boom");
    model.describe(&request("play".into())).unwrap();
    let error = model.record(SegmentName::Head).unwrap_err();
    assert!(error.text.starts_with("head: plugin actor: xxx") && error.text.chars().count() < 600, "{}", error.text);
}

#[test]
fn a_reply_over_its_bound_is_refused() {
    let model = model();
    model.describe(&request("play".into())).unwrap();
    assert_eq!(model.ids("window", &[IDS_MAX as u32]).unwrap().len(), IDS_MAX);
    let error = model.ids("window", &[IDS_MAX as u32 + 1]).unwrap_err();
    assert!(error.text.contains("65537") && error.text.contains("65536"), "{}", error.text);
}

#[test]
fn log_lines_are_clean_and_say_how_bad_it_is() {
    assert_eq!(log_line(0, "a\nb"), "plugin: error: a b");
    assert_eq!(log_line(1, "a"), "plugin: warning: a");
    assert_eq!(log_line(3, "a"), "plugin: a");
}

#[test]
fn a_model_may_be_used_from_any_thread() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<PluginModel>();
    assert_shared::<Library>();
}
