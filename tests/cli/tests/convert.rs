//! `coli convert`: what it writes, that it can be killed at any moment, and what it refuses.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use coli_test_cli::{Run, copy_demo, copy_golden, demo_case, edit, fresh, golden_gguf, says};
use coli_test_common::built;
use serde_json::{Value, json};
use tempfile::TempDir;

const STATE: &str = "coli-convert.json";

fn convert(from: &Path, to: &Path) -> Run {
    Run::coli(["convert", "--from"]).arg(from).arg("--to").arg(to)
}

/// A folder that is not there yet, on the file system of the build.
fn target() -> (TempDir, PathBuf) {
    let dir = fresh();
    let to = dir.path().join("to");
    (dir, to)
}

/// All files of a folder.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// The header of a safetensors file, and its tensors' bytes.
fn parts(bytes: &[u8]) -> (serde_json::Map<String, Value>, &[u8]) {
    let (len, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*len) as usize);
    (serde_json::from_slice(header).unwrap(), data)
}

/// A folder with the demo model in so many files.
fn sharded(count: usize) -> TempDir {
    let folder = fresh();
    copy_demo(folder.path());
    let whole = folder.path().join("model.safetensors");
    let bytes = fs::read(&whole).unwrap();
    fs::remove_file(&whole).unwrap();
    let (header, data) = parts(&bytes);
    let tensors: Vec<(&String, &Value)> = header.iter().filter(|(name, _)| *name != "__metadata__").collect();
    let mut map = serde_json::Map::new();
    for (number, tensors) in tensors.chunks(tensors.len().div_ceil(count)).enumerate() {
        let name = format!("model-{:05}-of-{count:05}.safetensors", number + 1);
        let (mut own, mut numbers) = (serde_json::Map::new(), Vec::new());
        for (tensor, facts) in tensors {
            let at = |index: usize| facts["data_offsets"][index].as_u64().unwrap() as usize;
            let start = numbers.len();
            numbers.extend_from_slice(&data[at(0)..at(1)]);
            own.insert(
                (*tensor).clone(),
                json!({"dtype": facts["dtype"], "shape": facts["shape"], "data_offsets": [start, numbers.len()]}),
            );
            map.insert((*tensor).clone(), json!(name));
        }
        let own = Value::Object(own).to_string();
        fs::write(folder.path().join(&name), [&(own.len() as u64).to_le_bytes(), own.as_bytes(), &numbers].concat()).unwrap();
    }
    fs::write(folder.path().join("model.safetensors.index.json"), json!({"weight_map": map}).to_string()).unwrap();
    folder
}

#[test]
fn the_demo_model_is_converted_with_a_summary() {
    let (_dir, to) = target();
    let finished = convert(&built::demo(), &to).arg("--json").finish();
    says(&finished.stderr, &["int4-g64", "int8-row", "that are free", "wrote model.safetensors"]);
    let report = finished.json();
    assert_eq!((&report["plugin"], &report["experts"], &report["dense"]), (&json!("olmoe"), &json!("int4-g64"), &json!("int8-row")));
    // 6 layers of 16 experts of 3 matrices of 256 x 128: a byte for two, a scale for 64.
    let matrices = 6 * 16 * 3;
    let experts = json!({"tensors": matrices, "bytes_before": matrices * 65536, "bytes_after": matrices * (16384 + 2048)});
    assert_eq!(report["tensors"]["experts"], experts);
    // Embedding, head, and q, k, v, o of each layer. The router and four norms of each layer and the last norm stay.
    assert_eq!((&report["tensors"]["dense"]["tensors"], &report["tensors"]["kept"]["tensors"]), (&json!(2 + 6 * 4), &json!(6 * 5 + 1)));
    let bytes: u64 = contents(&to).iter().filter(|(name, _)| !name.contains(".index.")).map(|(_, bytes)| bytes.len() as u64).sum();
    assert_eq!((report["bytes"].as_u64(), report["files_found"].as_u64()), (Some(bytes), Some(0)));
    for name in ["config.json", "generation_config.json", "tokenizer.json"] {
        assert_eq!(fs::read(to.join(name)).unwrap(), fs::read(built::demo().join(name)).unwrap(), "{name}");
    }
    let finished = convert(&built::demo(), &to).finish();
    says(&finished.failed(2), &["--to: ", "is a finished conversion, with --experts int4-g64 --dense int8-row"]);
}

/// `kill -9` again and again, each a little later than the one before, until a run gets to its end.
#[test]
fn a_conversion_that_is_killed_at_any_moment_is_gone_on_with() {
    let source = sharded(9);
    let (_dir, whole) = target();
    convert(source.path(), &whole).finish().succeeded();
    let whole = contents(&whole);
    assert!(whole.len() > 10, "{:?}", whole.keys());
    let (mut killed, mut found) = (0, Vec::new());
    for first in [0u64, 3] {
        let (_dir, to) = target();
        for round in 0.. {
            let running = convert(source.path(), &to).start();
            std::thread::sleep(Duration::from_millis(first + 5 * round));
            let done = to.is_dir() && !to.join(STATE).exists() && to.join("config.json").exists();
            // Dropping it kills it.
            drop(running);
            if done {
                break;
            }
            killed += 1;
            let names: Vec<String> = if to.is_dir() { contents(&to).into_keys().collect() } else { vec![] };
            // A file with its own name is whole.
            for name in names.iter().filter(|name| **name != STATE && !name.ends_with(".partial")) {
                assert!(fs::read(to.join(name)).unwrap() == whole[name], "{name} in round {round}");
            }
            found.push(names.iter().filter(|name| name.ends_with(".safetensors")).count());
        }
        // The last of the names was there; what is missing behind it is only the end.
        if to.join(STATE).exists() {
            convert(source.path(), &to).finish().succeeded();
        }
        assert!(contents(&to) == whole);
    }
    assert!(killed > 5 && found.iter().any(|count| (1..9).contains(count)), "{killed} kills, files there: {found:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_and_the_same_command_goes_on() {
    let source = sharded(9);
    let (_dir, to) = target();
    let mut running = convert(source.path(), &to).reachable().start();
    running.wait_for_message("wrote model-00001-of-00009.safetensors");
    running.interrupt();
    let finished = running.finish();
    says(&finished.failed(130), &["stopped by Ctrl-C", "the same command goes on with it"]);
    let files = contents(&to);
    assert!(files.contains_key(STATE) && files.keys().all(|name| !name.ends_with(".partial")), "{:?}", files.keys());
    // What is unfinished is no model.
    says(&Run::coli(["run", "x", "--model"]).arg(&to).finish().failed(3), &[&to.display().to_string()]);
    let other = convert(source.path(), &to).args(&["--dense", "keep"]).finish().failed(2);
    says(&other, &["was begun with --experts int4-g64 --dense int8-row"]);
    let report = convert(source.path(), &to).arg("--json").finish().json();
    let there = files.keys().filter(|name| name.ends_with(".safetensors")).count();
    assert_eq!(report["files_found"], json!(there));
    assert!(!to.join(STATE).exists());
}

#[test]
fn what_cannot_be_converted_is_refused_in_a_line() {
    let (dir, to) = target();
    let from = built::demo();
    let error = convert(&from, &to).args(&["--experts", "int5"]).finish().failed(2);
    says(&error, &["int5", "keep, int8 (which is int8-row)", "int4-g64-planar"]);
    says(&convert(&from, &built::plugins()).finish().failed(2), &["--to: ", "exists and is no unfinished conversion"]);
    says(&convert(&from, &dir.path().join("no/to")).finish().failed(2), &["--to: ", "does not exist"]);
    let file = golden_gguf();
    says(&convert(&file, &to).finish().failed(3), &["--from: ", "model.gguf", "run it as it is, with --model"]);
    says(&convert(&dir.path().join("none"), &to).finish().failed(3), &["none", "does not exist"]);
    says(&convert(file.parent().unwrap(), &to).finish().failed(3), &["config.json` is missing", "model.gguf` is one"]);
    let broken = copy_golden();
    let weights = broken.path().join("model.safetensors");
    let bytes = fs::read(&weights).unwrap();
    let text = String::from_utf8_lossy(&bytes[..]).into_owned();
    assert!(text.contains("model.layers.1.mlp.experts.3.up_proj.weight"));
    let name = b"model.layers.1.mlp.experts.3.up_proj.weight";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    let mut bytes = bytes;
    bytes[at] = b'M';
    fs::write(&weights, bytes).unwrap();
    says(&convert(broken.path(), &to).finish().failed(3), &["tensor `model.layers.1.mlp.experts.3.up_proj.weight` is not stored"]);
    assert!(!to.exists());
}

/// The largest file that a process may write is a disk that gets full in the middle.
#[cfg(unix)]
#[test]
fn a_write_that_fails_loses_nothing() {
    let source = sharded(3);
    let (_dir, to) = target();
    // In blocks of 512 bytes: less than a third of 9 MB.
    let error = convert(source.path(), &to).after("ulimit -f 4000").finish().failed(1);
    says(&error, &["writing `", "what is finished stays: make room and give the same command again"]);
    assert!(contents(&to).keys().all(|name| !name.ends_with(".partial")), "{:?}", contents(&to).keys());
    convert(source.path(), &to).finish().succeeded();
    let (_dir, whole) = target();
    convert(source.path(), &whole).finish().succeeded();
    assert!(contents(&to) == contents(&whole));
}

/// Converts the demo model into an empty file system of its own, with these options of mount: exit code, what lies there in the end, and
/// standard error. `None`, loudly, where the system does not let us have one.
#[cfg(target_os = "linux")]
fn into_own_file_system(options: &str) -> Option<(i32, String, String)> {
    const NO_MOUNT: i32 = 77;
    let dir = fresh();
    let script =
        "mount -t tmpfs -o \"$0\" none \"$1\" || exit 77; \"$2\" convert --from \"$3\" --to \"$1/to\"; code=$?; ls \"$1\"; exit $code";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, options]).arg(dir.path()).arg(built::program()).arg(built::demo());
    let outcome = command.env_remove("COLI_MODEL").output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let found = outcome.ok().map(|output| (output.status.code().unwrap_or(NO_MOUNT), text(&output.stdout), text(&output.stderr)));
    let found = found.filter(|(code, _, errors)| *code != NO_MOUNT && !errors.starts_with("unshare:"));
    if found.is_none() {
        eprintln!("SKIPPED: no file system can be mounted here");
    }
    found
}

#[cfg(target_os = "linux")]
#[test]
fn too_little_room_is_told_before_anything_is_written() {
    let Some((code, files, errors)) = into_own_file_system("size=4m") else { return };
    assert_eq!((code, files.as_str()), (1, ""), "{errors}");
    let line = errors.lines().last().unwrap();
    says(line, &["--to: not enough room", "are needed", "4.0 MiB are free", "nothing was written or lost"]);
    let (code, files, errors) = into_own_file_system("size=40m").unwrap();
    assert_eq!((code, files.as_str()), (0, "to\n"), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_folder_is_an_error() {
    let Some((code, files, errors)) = into_own_file_system("ro") else { return };
    assert_eq!((code, files.as_str()), (1, ""), "{errors}");
    says(errors.lines().last().unwrap(), &["--to: making folder", "Read-only"]);
}

/// The demo model in smaller formats predicts texts of the reference implementation about as well.
#[test]
fn the_demo_model_is_hardly_worse_in_smaller_formats() {
    let dir = fresh();
    let text = dir.path().join("text");
    let cases: Vec<String> = (0..4).map(demo_case).map(|case| case.prompt + &case.text).collect();
    fs::write(&text, cases.join("\n\n")).unwrap();
    let nats = |model: &Path| {
        let run = Run::coli(["eval", "ppl", "--json", "--precision", "exact", "--model"]).arg(model).arg("--text").arg(&text);
        run.finish().json()["nats_per_token"].as_f64().unwrap()
    };
    let before = nats(&built::demo());
    let mut planar = Vec::new();
    for (experts, dense, most) in [("int8", "int8", 0.03), ("int4-g64", "int8", 0.15), ("int4-g64-planar", "int8", 0.15)] {
        let to = dir.path().join(experts);
        convert(&built::demo(), &to).args(&["--experts", experts, "--dense", dense]).finish().succeeded();
        let after = nats(&to);
        assert!((after - before).abs() < most, "{experts}, {dense}: {before} nats a token before, {after} after");
        assert_ne!(after, before);
        planar.push(after);
    }
    // The same numbers in another order of bytes.
    assert_eq!(planar[1], planar[2]);
    let case = demo_case(0);
    let report = Run::coli(["run", &case.prompt, "--temp", "0", "-n", "8", "--precision", "exact", "--json", "--model"])
        .arg(dir.path().join("int8"))
        .finish()
        .json();
    assert_eq!(report["tokens"], json!(case.tokens[..8]));
}

/// Every architecture runs with what is made of it. Its golden models have random weights, so that small errors become large ones where a
/// router chooses otherwise; scores of another model would be off by more than they are large.
#[test]
fn every_model_in_int8_has_about_the_scores_that_it_had() {
    for_every_golden_model("int8-g64", |from, old, new| {
        let square = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|x| f64::from(x) * f64::from(x)).sum::<f64>();
        let off = square(&mut old.iter().zip(new).map(|(old, new)| old - new)) / square(&mut old.iter().copied());
        assert!(off > 0.0 && off.sqrt() < 0.6, "{}: {}", from.display(), off.sqrt());
    });
}

/// Numbers of wider types are the same numbers, so that every architecture has the same scores: each tensor is where its plugin looks.
#[test]
fn every_model_in_f32_has_the_scores_that_it_had() {
    for_every_golden_model("f32", |from, old, new| assert!(old == new, "{}", from.display()));
}

/// Converts all matrices of every golden folder, and hands out its path and its scores before and after.
fn for_every_golden_model(format: &str, check: impl Fn(&Path, &[f32], &[f32])) {
    let mut models = 0;
    for plugin in built::plugin_ids() {
        let Ok(cases) = fs::read_dir(built::plugins().join(plugin).join("golden")) else { continue };
        for from in cases.map(|entry| entry.unwrap().path()).filter(|path| path.join("config.json").is_file()) {
            let (dir, to) = target();
            convert(&from, &to).args(&["--experts", format, "--dense", format]).finish().succeeded();
            let scores = |model: &Path| {
                let out = dir.path().join("out.st");
                let run = Run::coli(["eval", "logits", "--ids", "1,2,3,4,5,6,7", "--precision", "exact", "--model"]).arg(model);
                run.arg("--out").arg(&out).finish().succeeded();
                let bytes = fs::read(out).unwrap();
                parts(&bytes).1.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect::<Vec<f32>>()
            };
            check(&from, &scores(&from), &scores(&to));
            models += 1;
        }
    }
    assert!(models >= 6, "{models}");
}

/// A model of 256 MiB in half of that memory: neither a file nor a tensor is ever in memory as a whole.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded() {
    const VOCAB: u64 = 1 << 20;
    let from = copy_golden();
    edit(&from.path().join("config.json"), |config| config["vocab_size"] = json!(VOCAB));
    let path = from.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let (mut header, mut end) = (parts(&bytes).0, 0);
    for (name, tensor) in header.iter_mut().filter(|(name, _)| *name != "__metadata__") {
        if name.contains("embed_tokens") || name.contains("lm_head") {
            tensor["shape"][0] = json!(VOCAB);
        }
        let numbers: u64 = tensor["shape"].as_array().unwrap().iter().map(|len| len.as_u64().unwrap()).product();
        let start = end;
        end += numbers * if tensor["dtype"] == "F32" { 4 } else { 2 };
        tensor["data_offsets"] = json!([start, end]);
    }
    // Its numbers are a hole: all 0.
    let text = Value::Object(header).to_string();
    fs::write(&path, [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8 + text.len() as u64 + end).unwrap();
    assert!(end > 256 << 20);
    let (_dir, to) = target();
    convert(from.path(), &to).after("ulimit -v 120000").finish().succeeded();
    // Half of what it was, and a scale for every 64 numbers.
    let size = fs::metadata(to.join("model.safetensors")).unwrap().len();
    assert!((136 << 20..140 << 20).contains(&size), "{size}");
}
