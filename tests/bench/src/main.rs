//! Figures of the demo model, as medians: `cargo run --release -p coli-test-bench`. Results go to `docs/measurements/` with machine and
//! date. Nothing here is a test: a figure that is asserted is a flaky one.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use coli_app::engine::{Input, discover_plugins, op_table, record_all};
use coli_chain::Program;
use coli_config::{Baked, Environment};
use coli_plugin_api::describe::{Container, DescribeRequest};
use coli_plugins::{Library, ModelKind, PluginModel};
use coli_shaders::contract::Sampling;
use coli_test_common::built;
use coli_test_golden::open;

const RUNS: usize = 9;

fn main() {
    contract();
    speed();
    start();
}

/// Seconds of the median of several runs.
fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn show(what: &str, value: f64, unit: &str) {
    println!("{what:<56} {value:>10.2} {unit}");
}

/// What stands between a plugin library and a program.
fn contract() {
    let home = built::program().parent().unwrap().to_path_buf();
    let values = [("COLI_HOME", home.as_os_str()), ("COLI_PLUGIN_PATH", built::plugins().as_os_str())].map(|(k, v)| (k.into(), v.into()));
    let environment = Environment::from_values(values, Baked::default()).unwrap();
    let plugins = discover_plugins(None, &environment).unwrap();
    let found = plugins.select(ModelKind::ModelType("olmoe")).unwrap().plugin;
    show("first load of the plugin library, layout check included", 1e3 * seconds(|| drop(black_box(Library::load(found).unwrap()))), "ms");
    let library = Library::load(found).unwrap();
    let checkpoint = coli_store::open(&built::demo()).unwrap();
    let config = checkpoint.config().clone();
    let request = DescribeRequest { container: Container::Hf, config, tensors: checkpoint.facts(), tokenizer: None };
    let describe = || {
        let model = PluginModel::new(&library).unwrap();
        let description = model.describe(&request).unwrap();
        (model, description)
    };
    show("describe, both ways over JSON", 1e3 * median(|| seconds(|| drop(black_box(describe())))), "ms");
    let (model, description) = describe();
    let recordings = record_all(&model, &description).unwrap();
    let bytes: usize = recordings.iter().map(|(_, bytes)| bytes.len()).sum();
    show("recording of all segments", 1e3 * median(|| seconds(|| drop(black_box(record_all(&model, &description).unwrap())))), "ms");
    let table = op_table();
    let build = || Program::build(&description, &recordings, &table, &[]).unwrap();
    let ops = build().ops().count();
    show(&format!("decoding, validation, linking ({ops} ops, {bytes} bytes)"), 1e3 * median(|| seconds(|| drop(black_box(build())))), "ms");
    let calls = 100_000;
    let call = || seconds(|| (0..calls).for_each(|_| drop(black_box(model.ids("none", &[1])))));
    show("one guarded plugin call (ids, answered by an error)", 1e9 * median(call) / f64::from(calls), "ns");
}

/// Tokens a second of the open model.
fn speed() {
    let mut engine = open(&built::demo());
    let ids: Vec<u32> = (0..512u32).map(|index| 2 + index * 7919 % 4094).collect();
    let mut prompt = |len: usize| {
        median(|| {
            let conv = engine.open_conversation();
            let time = seconds(|| assert!(engine.append(conv, Input::Prompt(&ids[..len]), Sampling::GREEDY, || Ok(())).is_ok()));
            engine.close_conversation(conv);
            len as f64 / time
        })
    };
    show("prompt of 512 tokens", prompt(512), "tok/s");
    let decode = median(|| {
        let conv = engine.open_conversation();
        let mut next = engine.append(conv, Input::Prompt(&ids[..16]), Sampling::GREEDY, || Ok(())).unwrap();
        let count = 128;
        let time =
            seconds(|| (0..count).for_each(|_| next = engine.append(conv, Input::Next(&next), Sampling::GREEDY, || Ok(())).unwrap()));
        engine.close_conversation(conv);
        f64::from(count) / time
    });
    show("decode of 128 tokens after 16", decode, "tok/s");
}

/// The program as a person starts it.
fn start() {
    let run = |tokens: &str| {
        let mut command = Command::new(built::program());
        command.args(["run", "Emma was", "--temp", "0", "-n", tokens]).env("COLI_HOME", built::home());
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    show("start to end of a run of 1 token", 1e3 * median(|| seconds(|| drop(run("1")))), "ms");
    let summary = run("1900");
    println!("a run of 1900 tokens: {}", summary.lines().last().unwrap_or_default());
}
