//! A plugin that loads and then breaks a rule: the run that needs it is refused in one line, and nothing else happens.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use coli_plugin_api::describe::{Container, DescribeRequest};
use coli_plugins::{Host, ModelKind, PluginModel, Plugins};
use coli_test_cli::{Finished, says};
use coli_test_plugins::folder::{Folder, Stated};
use coli_test_plugins::libraries;
use coli_test_plugins::model::Model;
use serde_json::json;

/// It was refused with nothing but one line, which is short, without control characters and not what a panic prints; gives the line.
#[track_caller]
fn refused(finished: Finished) -> String {
    let Finished { code: Some(3), stdout, stderr, .. } = &finished else { panic!("{finished:#?}") };
    let [line] = finished.lines()[..] else { panic!("{finished:#?}") };
    assert!(stdout.is_empty() && line.starts_with("coli: ") && line.len() < 1000, "{finished:#?}");
    // The plugin's panic is told of as `the plugin panicked in ...`; a panic's own text begins with the thread.
    assert!(!stderr.contains("RUST_BACKTRACE") && !stderr.contains("thread '") && !line.contains(char::is_control), "{finished:#?}");
    line.into()
}

#[test]
fn the_plugin_works_where_nothing_is_asked_of_it() {
    Model::sound().evaluate(&Folder::hostile(&libraries::hostile()));
}

#[test]
fn every_broken_rule_is_named() {
    let folder = Folder::hostile(&libraries::hostile());
    let cases: &[(&str, &[&str])] = &[
        ("panic_open", &["panicked in `describe`", "lib.rs:", "boom"]),
        ("panic_description", &["panicked in `describe`", "lib.rs:", "boom"]),
        ("panic_record", &["layer.1", "panicked in `record`", "lib.rs:", "boom"]),
        ("error_of_many_lines", &["first second"]),
        ("error_record", &["layer.1", "no way"]),
        ("unknown_op", &["layer.1", "teleport@1"]),
        ("unknown_version", &["layer.1", "norm@77"]),
        ("wrong_shape", &["layer.1", "matmul@1"]),
        ("cycle", &["layer.1", "ew@1"]),
        ("unknown_value", &["layer.1"]),
        ("unknown_weight", &["layer.1"]),
        ("wrong_access", &["layer.1", "matmul@1"]),
        ("foreign_state", &["layer.1", "layer.0"]),
        ("unknown_state", &["layer.1", "state"]),
        ("parameter_out_of_range", &["layer.1", "norm@1", "eps", "2"]),
        ("parameter_nan", &["layer.1", "norm@1", "eps", "NaN"]),
        ("parameter_infinite", &["layer.1", "norm@1", "scale", "inf"]),
        ("parameters_too_long", &["layer.1", "norm@1", "999"]),
    ];
    for (behave, parts) in cases {
        let line = refused(folder.eval(&Model::with("behave", *behave)).finish());
        says(&line, &[&["plugin hostile: "], *parts].concat());
    }
}

#[test]
fn damaged_replies_are_named() {
    let folder = Folder::hostile(&libraries::variation("damaged_replies"));
    Model::sound().evaluate(&folder);
    let cases: &[(&str, &[&str])] = &[
        ("text_empty", &["its description", "EOF"]),
        ("text_garbage", &["its description", "line 1"]),
        ("text_cut", &["its description"]),
        ("text_unknown_field", &["its description", "surprise"]),
        ("text_deep", &["its description"]),
        ("text_negative", &["its description", "-8"]),
        ("text_enormous", &["its description", "bytes", "at most 67108864"]),
        ("bytes_empty", &["embed", "header"]),
        ("bytes_cut", &["embed", "bytes"]),
        ("bytes_cut_and_stated", &["embed"]),
        ("bytes_trailing", &["embed", "bytes"]),
        ("bytes_trailing_and_stated", &["embed", "1 bytes are left over"]),
        ("bytes_other_format", &["embed", "CIR1"]),
        ("bytes_lying_count", &["embed", "names"]),
        ("bytes_enormous", &["recording of embed", "at most"]),
    ];
    for (damage, parts) in cases {
        let line = refused(folder.eval(&Model::with("damage", *damage)).finish());
        says(&line, &[&["plugin hostile: "], *parts].concat());
    }
}

/// No op that is implemented reads such an input, so no run gets that far.
#[test]
fn a_panic_in_ids_is_named() {
    let plugins = Folder::hostile(&libraries::hostile());
    let folder = coli_plugins::Folder { path: plugins.path().into(), origin: "the test".into(), named: true };
    let ops: Vec<String> = coli_shaders::ops::all().into_iter().map(|op| op.id).collect();
    let ops: Vec<&str> = ops.iter().map(String::as_str).collect();
    let found = Plugins::discover(None, &[folder], Host { ops: &ops, home: Path::new("") }).unwrap();
    let library = found.load(found.select(ModelKind::ModelType("hostile")).unwrap().plugin).unwrap();
    let model = PluginModel::new(&library).unwrap();
    let config = json!({ "model_type": "hostile", "vocab": 8, "width": 4, "layers": 2, "behave": "panic_ids" });
    model.describe(&DescribeRequest { container: Container::Hf, config, tensors: vec![], tokenizer: None }).unwrap();
    says(&model.ids("window", &[7]).unwrap_err().text, &["plugin hostile: the plugin panicked in `ids` at ", "boom"]);
}

#[test]
fn a_log_line_stays_one_line() {
    let said = Model::with("behave", "log").evaluate(&Folder::hostile(&libraries::hostile()));
    assert_eq!(said.lines().filter(|line| *line == "plugin: warning: first second").count(), 1, "{said}");
}

/// The rule is broken in the last of the layers: that its words are not heard shows that the plugin was not asked for them.
#[test]
fn more_segments_than_a_model_may_have_are_refused_before_they_are_recorded() {
    let model = Model::with("behave", "error_record");
    coli_test_cli::edit(&model.path().join("config.json"), |config| config["layers"] = 5000.into());
    let folder = Folder::hostile(&libraries::hostile());
    let error = refused(folder.eval(&model).finish());
    says(&error, &["plugin hostile: ", "5002 segments, expected 1 to 4096"]);
}

#[test]
fn a_slow_describe_works_and_says_what_is_waited_for() {
    let folder = Folder::hostile(&libraries::hostile());
    let waiting = |said: &str| said.lines().filter(|line| *line == "coli: waiting for plugin hostile to describe the model").count();
    let start = Instant::now();
    let said = Model::with("sleep_ms", 2500).evaluate(&folder);
    assert_eq!(waiting(&said), 1, "{said}");
    assert!(start.elapsed() >= Duration::from_millis(2500), "it was not waited for");
    assert_eq!(waiting(&Model::sound().evaluate(&folder)), 0);
}

#[test]
fn a_manifest_that_states_what_the_library_does_not_serve() {
    let folder = Folder::new();
    folder.put(&Stated { model_type: "another", ..Stated::HOSTILE }, &libraries::hostile());
    says(&refused(folder.eval(&Model::with("model_type", "another")).finish()), &["plugin hostile: ", "serves model type hostile"]);
    says(&refused(folder.eval(&Model::sound()).finish()), &["no plugin serves model type `hostile`"]);
}
