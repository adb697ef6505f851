//! Who has to act is the exit code; what is wrong is one line.
#![allow(clippy::unwrap_used)]

use std::fs;

use coli_test_cli::{Run, copy_demo, copy_golden, copy_plugin, demo_case, edit, fresh, golden, library_name, says};
use serde_json::{Value, json};

/// The error of a command line that is wrong.
fn usage(args: &[&str]) -> String {
    Run::coli(args).finish().failed(2)
}

#[test]
fn help_is_no_error_and_has_examples() {
    let commands: [&[&str]; 8] =
        [&[], &["run"], &["eval"], &["eval", "logits"], &["plugins"], &["config"], &["config", "explain"], &["completions"]];
    for command in commands {
        let finished = Run::coli(command).arg("--help").finish().succeeded();
        let name: String = ["coli"].iter().chain(command).copied().collect::<Vec<_>>().join(" ");
        says(&finished.stdout, &["Example", &format!("\n  {name}"), "Usage: "]);
        assert_eq!(finished.stderr, "");
    }
}

/// Who starts it for the first time reads what it is and what to type.
#[test]
fn the_help_begins_with_what_it_is_and_the_first_command() {
    let finished = Run::coli(["--help"]).finish().succeeded();
    let lines: Vec<&str> = finished.stdout.lines().collect();
    says(lines[0], &["coli runs Mixture-of-Experts language models"]);
    says(lines[1], &["coli run \"Emma was\""]);
}

/// Where the limit leaves too little, a line says so; no signal ends the process. Below the first limit the system cannot start it.
#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_one_line() {
    let run = |kib: u32| Run::coli(["run", "Elizabeth", "--temp", "0", "-n", "1"]).after(&format!("ulimit -v {kib}"));
    let (mut lines, mut works) = (0, false);
    for kib in (20_000..100_000).step_by(3_000) {
        let finished = run(kib).finish();
        match finished.code {
            Some(127) => {}
            Some(0) => works = true,
            _ => {
                lines += 1;
                says(&finished.failed(1), &["memory"]);
            }
        }
    }
    assert!(works && lines > 0, "{lines} limits were too low");
}

/// Help and version are output like any other.
#[cfg(target_os = "linux")]
#[test]
fn help_and_version_that_cannot_be_written_are_errors() {
    for args in [&["--version"][..], &["-V"], &["--help"], &["run", "--help"], &["help"]] {
        let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        says(&Run::coli(args).finish_into(full()).failed(1), &["standard output", "No space left"]);
        says(&Run::coli(args).finish_without_stdout().failed(1), &["standard output", "broken pipe"]);
    }
}

/// Few files may be open at a time: that is nothing a model or plugin is refused for.
#[cfg(target_os = "linux")]
#[test]
fn too_few_open_files_are_no_refusal() {
    let (mut lines, mut works) = (0, false);
    for files in 3..24 {
        let finished = Run::coli(["run", "Elizabeth", "--temp", "0", "-n", "1"]).after(&format!("ulimit -n {files}")).finish();
        match finished.code {
            // The system could not start it.
            Some(127) => {}
            Some(0) => works = true,
            _ => {
                lines += 1;
                says(&finished.failed(1), &["Too many open files"]);
            }
        }
    }
    assert!(works && lines > 0, "{lines} limits were too low");
}

#[test]
fn the_version_is_no_error() {
    let finished = Run::coli(["--version"]).finish().succeeded();
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(lines[0], format!("coli {}", env!("CARGO_PKG_VERSION")));
    let starts = ["commit ", "features ", "plugin ABI ", "recording format "];
    assert_eq!(lines.len(), 1 + starts.len(), "{finished:#?}");
    for (line, start) in lines[1..].iter().zip(starts) {
        assert!(line.strip_prefix(start).is_some_and(|rest| !rest.trim().is_empty()), "{line}");
    }
    let short = Run::coli(["-V"]).finish().succeeded();
    assert_eq!(short.stdout, format!("coli {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_shell_gets_a_script_that_knows_the_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let finished = Run::coli(["completions", shell]).finish().succeeded();
        says(&finished.stdout, &["coli", "repeat-penalty", "explain"]);
        assert_eq!(finished.stderr, "");
    }
    says(&usage(&["completions", "cmd"]), &["cmd", "bash"]);
}

#[test]
fn the_name_of_a_published_model_is_answered_with_how_to_fetch_it() {
    let folder = fresh();
    let run = || Run::coli(["run", "x", "--model", "some-org/Some-MoE_1.0"]).dir(folder.path());
    let command = "hf download some-org/Some-MoE_1.0 --local-dir Some-MoE_1.0 --include '*.json'";
    says(&run().finish().failed(3), &[command, "config.json", "tokenizer.json", "model*.safetensors"]);
    let by_variable = Run::coli(["run", "x"]).env("COLI_MODEL", "some-org/Some-MoE_1.0").dir(folder.path());
    says(&by_variable.finish().failed(3), &[command]);
    // A folder of that name is a folder.
    fs::create_dir_all(folder.path().join("some-org/Some-MoE_1.0")).unwrap();
    says(&run().finish().failed(3), &["config.json", "missing"]);
}

#[test]
fn a_command_that_is_not_finished_is_answered_with_its_help() {
    for args in [&[][..], &["eval"]] {
        let finished = Run::coli(args).finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
        says(&finished.stderr, &["Usage: coli", "Commands:"]);
    }
}

#[test]
fn a_missing_prompt_is_a_usage_error() {
    says(&usage(&["run"]), &["prompt"]);
    says(&usage(&["run", ""]), &["prompt"]);
}

#[test]
fn an_unknown_word_is_a_usage_error_with_a_suggestion() {
    says(&usage(&["run", "x", "--tmep", "0"]), &["--tmep", "--temp"]);
    says(&usage(&["runn", "x"]), &["runn", "'run'"]);
    says(&usage(&["run", "two", "prompts"]), &["prompts"]);
}

#[test]
fn a_number_out_of_range_is_a_usage_error_that_names_the_option() {
    for value in ["-1", "nan", "inf", "warm", ""] {
        says(&usage(&["run", "x", "--temp", value]), &["--temp", value]);
    }
    for value in ["0", "-0.5", "1.5", "nan"] {
        says(&usage(&["run", "x", "--top-p", value]), &["--top-p", value]);
    }
    for (option, value) in [("--top-k", "-1"), ("--ctx", "-1"), ("--seed", "-1"), ("--seed", "18446744073709551616"), ("--tokens", "-1")] {
        says(&usage(&["run", "x", option, value]), &[option, value]);
    }
}

#[test]
fn a_word_that_is_no_precision_is_a_usage_error_that_lists_them() {
    says(&usage(&["run", "x", "--precision", "f32"]), &["f32", "auto, exact, fast"]);
}

#[test]
fn ids_that_are_no_numbers_are_a_usage_error() {
    for ids in ["a", "1,b", "1,", "", "-1", "1.5", "4294967296"] {
        says(&usage(&["eval", "logits", "--ids", ids]), &["--ids"]);
    }
    says(&usage(&["eval", "logits"]), &["--ids"]);
}

#[test]
fn layers_without_a_file_are_a_usage_error() {
    says(&usage(&["eval", "logits", "--ids", "1", "--layers"]), &["--out"]);
}

#[test]
fn an_id_out_of_the_vocabulary_is_a_usage_error_with_both_numbers() {
    let model = golden();
    let logits = |ids: &str| Run::coli(["eval", "logits", "--ids", ids, "--model"]).arg(&model).finish();
    says(&logits("1,256").failed(2), &["--ids", "256", "vocabulary"]);
    says(&logits("4294967295").failed(2), &["4294967295", "256"]);
    logits("255").succeeded();
}

#[test]
fn a_prompt_over_the_context_is_a_usage_error_with_both_numbers() {
    let case = demo_case(25);
    let len = case.prompt_ids.len();
    let error = usage(&["run", &case.prompt, "--ctx", &(len - 1).to_string()]);
    says(&error, &[&len.to_string(), &(len - 1).to_string(), "--ctx"]);
    let error = usage(&["eval", "logits", "--ids", "1,2,3", "--ctx", "2"]);
    says(&error, &["3 tokens", "2", "--ctx", "up to 2048"]);
    let ids = "1,".repeat(2048) + "1";
    for context in [&["--ctx", "2048"][..], &[]] {
        let error = usage(&[&["eval", "logits", "--ids", &ids], context].concat());
        says(&error, &["2049 tokens", "this model's context has at most 2048"]);
        assert!(!error.contains("--ctx"), "{error}");
    }
}

#[test]
fn a_context_that_the_model_does_not_have_is_a_usage_error_with_both_numbers() {
    says(&usage(&["run", "x", "--ctx", "2049"]), &["--ctx", "2049", "2048"]);
    says(&usage(&["run", "x", "--ctx", "0"]), &["--ctx 0", "2048"]);
}

#[test]
fn an_unknown_variable_is_a_usage_error_with_a_suggestion() {
    for args in [&["run", "x"][..], &["plugins"], &["eval", "logits", "--ids", "1"]] {
        let error = Run::coli(args).env("COLI_PLUGINPATH", "x").finish().failed(2);
        says(&error, &["`COLI_PLUGINPATH`", "`COLI_PLUGIN_PATH`"]);
    }
}

#[cfg(unix)]
#[test]
fn a_prompt_that_is_no_text_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt as _;
    let error = Run::coli(["run"]).arg(std::ffi::OsStr::from_bytes(b"\xff\xfe")).finish().failed(2);
    says(&error, &["UTF-8"]);
}

#[test]
fn a_missing_model_folder_is_refused_by_name() {
    let folder = fresh();
    let absent = folder.path().join("absent");
    let named = Run::coli(["run", "x", "--model"]).arg(&absent).finish().failed(3);
    let by_variable = Run::coli(["run", "x"]).env("COLI_MODEL", &absent).finish().failed(3);
    for error in [named, by_variable] {
        says(&error, &[absent.to_str().unwrap(), "does not exist"]);
    }
}

#[test]
fn a_folder_without_a_model_is_refused_with_what_is_missing() {
    let folder = fresh();
    let refusal = || Run::coli(["run", "x", "--model"]).arg(folder.path()).finish().failed(3);
    says(&refusal(), &["config.json", "missing"]);
    fs::write(folder.path().join("config.json"), r#"{"model_type":"olmoe"}"#).unwrap();
    says(&refusal(), &[folder.path().to_str().unwrap(), "no *.safetensors"]);
}

#[test]
fn a_file_in_the_place_of_a_model_is_refused() {
    let file = golden().join("config.json");
    says(&Run::coli(["run", "x", "--model"]).arg(&file).finish().failed(3), &[file.to_str().unwrap(), "not a folder"]);
}

#[test]
fn a_model_type_that_nobody_serves_is_refused_with_what_is_served() {
    let model = copy_golden();
    edit(&model.path().join("config.json"), |config| config["model_type"] = json!("bog\nus"));
    let error = Run::coli(["eval", "logits", "--ids", "1", "--model"]).arg(model.path()).finish().failed(3);
    says(&error, &["`bog us`", "served are ", "model types olmoe and GGUF architectures olmoe by plugin olmoe"]);
}

#[test]
fn an_unknown_plugin_is_refused_with_the_known_ones() {
    let error = Run::coli(["run", "x", "--model-plugin", "mixtral"]).finish().failed(3);
    says(&error, &["--model-plugin mixtral", "known are ", "olmoe"]);
}

#[test]
fn a_plugin_that_does_not_serve_the_model_is_refused_with_what_it_serves_and_the_flag() {
    let folder = fresh();
    let plugin = copy_plugin(folder.path());
    let manifest = plugin.join("olmoe.plugin.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace(r#"model_types = ["olmoe"]"#, r#"model_types = ["mixtral", "jamba"]"#)).unwrap();
    let error = Run::coli(["run", "x", "--model-plugin"]).arg(&plugin).finish().failed(3);
    says(&error, &["--model-plugin", "mixtral, jamba", "`olmoe`", "--model"]);
}

#[test]
fn a_missing_tokenizer_is_refused_for_text_and_not_needed_for_ids() {
    let folder = fresh();
    copy_demo(folder.path());
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let error = Run::coli(["run", "x", "--model"]).arg(folder.path()).finish().failed(3);
    says(&error, &["tokenizer.json", "missing", "eval logits"]);
    let finished = Run::coli(["eval", "logits", "--ids", "1,2", "--model"]).arg(folder.path()).finish().succeeded();
    assert_eq!(finished.stdout.lines().count(), 3);
}

#[test]
fn a_broken_tokenizer_is_refused() {
    let folder = fresh();
    copy_demo(folder.path());
    for text in ["", "{}", "[1", "\u{0}"] {
        fs::write(folder.path().join("tokenizer.json"), text).unwrap();
        says(&Run::coli(["run", "x", "--model"]).arg(folder.path()).finish().failed(3), &["tokenizer.json"]);
    }
}

#[test]
fn a_broken_generation_config_is_refused() {
    let folder = fresh();
    copy_demo(folder.path());
    for text in ["", "garbage", r#"{"eos_token_id":"x"}"#, "[]", "null", "3"] {
        fs::write(folder.path().join("generation_config.json"), text).unwrap();
        says(&Run::coli(["run", "x", "--model"]).arg(folder.path()).finish().failed(3), &["generation_config.json"]);
    }
    let file = folder.path().join("generation_config.json");
    for args in [["run", "x"], ["config", "explain"]] {
        let error = Run::coli(args).arg("--model").arg(folder.path()).finish().failed(3);
        says(&error, &[file.to_str().unwrap(), "is not a JSON object"]);
    }
}

#[test]
fn a_plugin_library_that_does_not_load_is_refused() {
    let folder = fresh();
    let plugin = copy_plugin(folder.path());
    let library = plugin.join(library_name());
    fs::remove_file(&library).unwrap();
    fs::write(&library, "some text in the place of a library, long enough that it could hold a header of one").unwrap();
    let error = Run::coli(["run", "x", "--model-plugin"]).arg(&plugin).finish().failed(3);
    says(&error, &["olmoe", library.to_str().unwrap(), "not a shared library"]);
}

#[test]
fn a_device_that_cannot_be_had_is_an_unmet_request_by_name() {
    for device in ["vulkan", "0", "NVIDIA H200"] {
        let run = Run::coli(["run", "x", "--device", device]).finish().failed(4);
        let eval = Run::coli(["eval", "logits", "--ids", "1", "--device", device]).finish().failed(4);
        for error in [run, eval] {
            says(&error, &[&format!("--device {device}: "), "--device cpu"]);
        }
    }
}

#[test]
fn threads_are_as_many_as_asked_for_or_refused() {
    says(&Run::coli(["run", "x", "--threads", "0"]).finish().failed(2), &["--threads: 0 is not from 1 to 1024"]);
    says(&Run::coli(["run", "x", "--threads", "5000"]).finish().failed(2), &["--threads: 5000 is not from 1 to 1024"]);
    says(&Run::coli(["run", "x", "--threads", "two"]).finish().failed(2), &["two"]);
    says(&Run::coli(["run", "x"]).env("COLI_THREADS", "0").finish().failed(2), &["COLI_THREADS", "1"]);
    let told = Run::coli(["run", "Elizabeth", "-n", "1", "--threads", "3", "--precision", "fast"]).finish().succeeded().stderr;
    says(&told, &["threads 3", "precision fast (asked for by --precision fast, ", " kernels)"]);
}

#[test]
fn a_measurement_is_of_what_was_asked_for() {
    let bench = |args: &[&str]| Run::coli(["bench", "--json"]).args(args).finish().json();
    let report = bench(&["--prompt", "70", "--gen", "3", "--runs", "2", "--threads", "2", "--profile"]);
    assert_eq!(
        (&report["prompt"], &report["gen"], &report["threads"], &report["precision"]),
        (&json!(70), &json!(3), &json!(2), &json!("exact"))
    );
    for rates in ["prompt_runs", "gen_runs"] {
        let rates = report[rates].as_array().unwrap();
        assert!(rates.len() == 2 && rates.iter().all(|rate| rate.as_f64().unwrap() > 0.0), "{report}");
    }
    // A token reads each dense matrix once and 8 of the 48 experts of a layer.
    let (all, token) = (report["weight_bytes"].as_f64().unwrap(), report["token_weight_bytes"].as_f64().unwrap());
    assert!(token > 0.2 * all && token < 0.5 * all, "{report}");
    assert!(report["profile"]["decode"].as_array().unwrap().iter().any(|op| op["op"] == "moe@1"), "{report}");
    let none = bench(&["--prompt", "0", "--gen", "0"]);
    assert_eq!((&none["prompt_tok_s"], &none["gen_tok_s"], &none["token_weight_bytes"]), (&Value::Null, &Value::Null, &Value::Null));
    says(&Run::coli(["bench", "--prompt", "900000"]).finish().failed(2), &["900000 tokens do not fit a context of 2048", "at most 2048"]);
}
