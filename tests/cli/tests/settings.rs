//! Settings: what counts more, what a file may say, and that `coli config explain` tells.
#![allow(clippy::unwrap_used)]

use std::fs;

use coli_test_cli::{Run, copy_demo, copy_plugin, demo_case, edit, fresh, says};
use coli_test_common::built;
use serde_json::{Value, json};

/// The row of a key that `coli config explain --json` gives.
fn row(run: Run, key: &str) -> Value {
    let rows = run.args(&["config", "explain", "--json"]).finish().json();
    rows.as_array().unwrap().iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}: {rows}")).clone()
}

fn none() -> Run {
    Run::coli([""; 0])
}

/// A model whose own file says how tokens are chosen.
fn model(generation: &Value) -> tempfile::TempDir {
    let folder = fresh();
    copy_demo(folder.path());
    edit(&folder.path().join("generation_config.json"), |json| {
        generation.as_object().unwrap().iter().for_each(|(key, value)| json[key] = value.clone());
    });
    folder
}

#[test]
fn command_line_environment_file_model_and_default_count_in_this_order() {
    let here = fresh();
    fs::write(here.path().join("coli.toml"), "top_k = 3").unwrap();
    let model = model(&json!({"top_k": 4}));
    let with = |line: bool, variable: bool, file: bool, of_model: bool| {
        let mut run = none();
        let elsewhere = std::env::temp_dir();
        run = run.dir(if file { here.path() } else { &elsewhere });
        if variable {
            run = run.env("COLI_TOP_K", "2");
        }
        if of_model {
            run = run.env("COLI_MODEL", model.path());
        }
        let run = run.args(&["config", "explain", "--json"]);
        let rows = if line { run.args(&["--top-k", "1"]) } else { run }.finish().json();
        let row = rows.as_array().unwrap().iter().find(|row| row["key"] == "top_k").unwrap();
        (row["value"].as_u64().unwrap(), row["source"].as_str().unwrap().to_string())
    };
    assert_eq!(with(true, true, true, true), (1, "command line".into()));
    assert_eq!(with(false, true, true, true), (2, "environment COLI_TOP_K".into()));
    assert_eq!(with(false, false, true, true), (3, "file coli.toml".into()));
    assert_eq!(with(false, false, false, true), (4, "model's generation_config.json".into()));
    assert_eq!(with(false, false, false, false), (0, "default".into()));
}

#[test]
fn a_named_file_counts_more_than_the_one_here_and_that_more_than_the_persons() {
    let (here, user, named) = (fresh(), fresh(), fresh());
    let config = user.path().join(".config/coli");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("coli.toml"), "tokens = 3").unwrap();
    fs::write(named.path().join("x.toml"), "tokens = 1").unwrap();
    let run = || none().dir(here.path()).env("HOME", user.path());
    assert_eq!(row(run(), "tokens")["value"], 3);
    let xdg = none().dir(here.path()).env("XDG_CONFIG_HOME", user.path().join(".config"));
    assert_eq!(row(xdg, "tokens")["value"], 3);
    fs::write(here.path().join("coli.toml"), "tokens = 2").unwrap();
    assert_eq!(row(run(), "tokens")["value"], 2);
    let path = named.path().join("x.toml");
    let of_named = row(run().args(&["--config", path.to_str().unwrap()]), "tokens");
    assert_eq!((&of_named["value"], of_named["source"].as_str().unwrap()), (&json!(1), format!("file {}", path.display()).as_str()));
}

#[test]
fn settings_of_a_file_and_of_the_environment_are_acted_on() {
    let case = demo_case(0);
    let here = fresh();
    fs::write(here.path().join("coli.toml"), "temp = 0\ntokens = 5").unwrap();
    let text = |run: Run| run.args(&["run", "--json", &case.prompt]).finish().json()["tokens"].clone();
    assert_eq!(text(none().dir(here.path())), json!(case.tokens[..5]));
    assert_eq!(text(none().dir(here.path()).env("COLI_TOKENS", "3")), json!(case.tokens[..3]));
    let finished = Run::coli(["run", &case.prompt]).dir(here.path()).finish().succeeded();
    assert!(finished.lines().contains(&"coli: settings from coli.toml"), "{finished:#?}");
}

#[test]
fn every_setting_of_the_model_and_of_its_plugin_may_come_from_a_file() {
    let (here, plugins) = (fresh(), fresh());
    copy_plugin(plugins.path());
    let demo = built::demo();
    let text = format!(
        "model = {demo:?}\nmodel_plugin = \"olmoe\"\ndevice = \"cpu\"\nprecision = \"exact\"\nctx = 8\ntemp = 0\nplugin_path = [{:?}]\n",
        plugins.path()
    );
    fs::write(here.path().join("coli.toml"), text).unwrap();
    let finished = Run::coli(["run", "-v", "Elizabeth", "--json"]).dir(here.path()).finish();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    says(&finished.stderr, &["device cpu (asked for", "from coli.toml"]);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&report["stop_reason"], report["model"].as_str()), (&json!("context"), demo.to_str()));
}

#[test]
fn a_model_that_does_not_sample_is_greedy_unless_asked() {
    let case = demo_case(0);
    let model = model(&json!({"do_sample": false}));
    let run = |more: &[&str]| Run::coli(["run", &case.prompt, "-n", "64", "--model"]).arg(model.path()).args(more).finish().succeeded();
    let greedy = run(&[]);
    assert_eq!(greedy.stdout, case.text);
    assert!(!greedy.stderr.contains("seed "), "{greedy:#?}");
    assert!(run(&["--temp", "1"]).stderr.contains("seed "));
}

#[test]
fn a_wrong_value_of_the_model_is_refused_unless_another_takes_its_place() {
    let model = model(&json!({"temperature": "warm"}));
    let run = || Run::coli(["run", "Elizabeth", "-n", "2", "--model"]).arg(model.path());
    says(&run().finish().failed(3), &["generation_config.json", "temperature is \"warm\"", "--temp"]);
    run().args(&["--temp", "0"]).finish().succeeded();
}

#[test]
fn faults_of_a_file_are_one_line_with_its_place() {
    let here = fresh();
    let path = here.path().join("coli.toml");
    for (text, parts) in [
        ("tmep = 1", &["`coli.toml`", "line 1", "`tmep`", "`temp`"][..]),
        ("\ntemp = \"warm\"", &["line 2", "temp is \"warm\"", "expected a number from 0 to 100"]),
        ("temp", &["line 1", "not TOML"]),
    ] {
        fs::write(&path, text).unwrap();
        for args in [&["run", "x"][..], &["plugins"], &["eval", "logits", "--ids", "1"], &["config", "explain"]] {
            says(&Run::coli(args).dir(here.path()).finish().failed(2), parts);
        }
    }
    says(&Run::coli(["run", "x", "--config", "absent.toml"]).finish().failed(2), &["absent.toml", "does not exist"]);
    says(&Run::coli(["run", "x", "--config", "."]).finish().failed(2), &["not a regular file"]);
    // Neither needs settings.
    Run::coli(["completions", "bash"]).dir(here.path()).finish().succeeded();
    Run::coli(["--version"]).dir(here.path()).finish().succeeded();
}

#[test]
fn faults_of_a_variable_name_it() {
    says(&Run::coli(["run", "x"]).env("COLI_TEMP", "warm").finish().failed(2), &["`COLI_TEMP` is `warm`", "a number from 0 to 100"]);
    says(&Run::coli(["run", "x"]).env("COLI_PRECISION", "f32").finish().failed(2), &["environment COLI_PRECISION", "auto, exact, fast"]);
    says(&Run::coli(["run", "x"]).env("COLI_TMEP", "1").finish().failed(2), &["`COLI_TMEP`", "`COLI_TEMP`"]);
    Run::coli(["run", "Elizabeth", "-n", "1"]).env("COLI_TEMP", "").finish().succeeded();
}

#[test]
fn a_request_that_cannot_be_met_names_its_source() {
    let error = Run::coli(["run", "x"]).env("COLI_DEVICE", "vulkan").finish().failed(4);
    says(&error, &["environment COLI_DEVICE: --device vulkan: "]);
    let here = fresh();
    fs::write(here.path().join("coli.toml"), "device = \"vulkan\"").unwrap();
    says(&Run::coli(["run", "x"]).dir(here.path()).finish().failed(4), &["file coli.toml: --device vulkan: "]);
}

#[test]
fn explain_has_every_setting_with_source_unit_and_doc() {
    let page = fs::read_to_string(built::root().join("docs/generated/settings.md")).unwrap();
    let text = none().args(&["config", "explain", "--temp", "0.5"]).finish().succeeded().stdout;
    let rows = none().args(&["config", "explain", "--json"]).finish().json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), text.lines().count());
    for row in rows {
        let field = |name: &str| row[name].as_str().unwrap().to_string();
        says(&page, &[&format!("| `{}` | `{}` | {} |", field("key"), field("environment"), field("unit"))]);
        let line = text.lines().find(|line| line.starts_with(&format!("{} ", field("key")))).unwrap();
        says(line, &[&field("unit"), &field("doc"), " from "]);
    }
    let line = text.lines().find(|line| line.starts_with("temp ")).unwrap();
    says(line, &["0.5", "from command line"]);
    let temp = rows.iter().find(|row| row["key"] == "temp").unwrap();
    assert_eq!((&temp["value"], &temp["source"]), (&json!(0.8), &json!("default")));
    let model = rows.iter().find(|row| row["key"] == "model").unwrap();
    assert_eq!((&model["value"], &model["default"]), (&Value::Null, &json!("the demo model")));
}

#[cfg(unix)]
#[test]
fn a_file_that_is_there_and_cannot_be_read_is_an_error_with_its_name() {
    let folder = fresh();
    let file = folder.path().join("coli.toml");
    for target in ["coli.toml", "nowhere"] {
        std::os::unix::fs::symlink(target, &file).unwrap();
        for command in [&["run", "x"][..], &["config", "explain"], &["plugins"]] {
            says(&Run::coli(command).dir(folder.path()).finish().failed(2), &["settings file `coli.toml`"]);
        }
        fs::remove_file(&file).unwrap();
    }
}
