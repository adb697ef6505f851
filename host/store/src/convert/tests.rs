//! Conversions of small models: what is written, where they may end, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use coli_base::Kind;
use coli_plugin_api::describe::{Description, ExpertView, View};
use coli_plugin_api::program::{GroupId, WeightId};
use coli_shaders::contract::{ExpertMatrix, WeightStore as _};
use coli_shaders::formats::WeightView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::layout::{FORMATS, SHAPES};
use super::*;
use crate::testing::{Stored, experts, save};
use crate::{Weights, load, open};

/// Numbers as bf16.
fn bf16(name: &str, shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> Stored {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(|number| ((number.to_bits() >> 16) as u16).to_le_bytes()).collect();
    Stored::raw(name, Dtype::BF16, shape, bytes)
}

/// Numbers without a pattern that a format could have.
fn mixed(name: &str, shape: &[usize]) -> Stored {
    let count: usize = shape.iter().product();
    bf16(name, shape, (0..count).map(|at| ((at * 7919 % 1009) as f32 - 504.0) / 64.0))
}

/// A model in three files: two layers of experts, one stored in pieces and one fused, a table, a router, norms, and what nobody uses.
fn source() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.json"), r#"{"model_type":"test"}"#).unwrap();
    for name in ["tokenizer.json", "generation_config.json", "chat_template.jinja", "LICENSE"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    fs::write(dir.path().join("old.bin"), "weights of another kind").unwrap();
    let mut first = vec![mixed("table", &[40, 64]), mixed("norm", &[64]), mixed("router", &[2, 64])];
    for expert in 0..2 {
        for what in ["gate", "up"] {
            first.push(mixed(&format!("0.{expert}.{what}"), &[96, 64]));
        }
        first.push(mixed(&format!("0.{expert}.down"), &[64, 96]));
    }
    let second = [mixed("1.gate_up", &[2, 192, 64]), mixed("1.down", &[2, 64, 96])];
    let third = [mixed("head", &[40, 64]), mixed("taps", &[64, 3]), Stored::raw("flags", Dtype::BOOL, &[3], vec![1, 0, 1])];
    let (names, mut map) = (["a-1-of-3", "a-2-of-3", "a-3-of-3"], BTreeMap::new());
    for (name, tensors) in names.into_iter().zip([&first[..], &second, &third]) {
        save(&dir.path().join(format!("{name}.safetensors")), tensors);
        let bytes = fs::read(dir.path().join(format!("{name}.safetensors"))).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        map.extend(file.names().into_iter().map(|tensor| (tensor.to_owned(), format!("{name}.safetensors"))));
    }
    fs::write(dir.path().join("model.safetensors.index.json"), json!({"weight_map": map}).to_string()).unwrap();
    dir
}

/// Ids of weights are positions: table, head, taps may be encoded, router and norm not.
fn description() -> Description {
    let each = |what: &str| ExpertView::PerExpert(format!("0.{{expert}}.{what}"));
    let mut description = experts(2, 64, 96, each("gate"), each("up"), each("down"));
    let fused = |tensor: &str, start| ExpertView::Fused { tensor: tensor.into(), start };
    let mut layer = description.groups[0].layers[0].clone();
    (layer.gate, layer.up, layer.down) = (fused("1.gate_up", 0), fused("1.gate_up", 96), fused("1.down", 0));
    description.groups[0].layers.push(layer);
    description.matrix("table", 40, 64, View::tensor("table"));
    description.matrix("head", 40, 64, View::tensor("head"));
    description.matrix("taps", 64, 3, View::tensor("taps"));
    description.matrix("router", 2, 64, View::tensor("router"));
    description.vector("norm", 64, View::tensor("norm"));
    description
}

const CHOSEN: Options = Options { experts: Choice::As(Format::INT4_G64), dense: Choice::As(Format::INT8_ROW) };

fn plan(from: &Path, options: Options) -> Result<Conversion> {
    let checkpoint = open(from)?;
    let roles = Roles::of(&checkpoint, &description(), |id| id.0 < 3);
    Conversion::plan(&checkpoint, &roles, options)
}

fn convert(from: &Path, to: &Path, options: Options) -> Result<()> {
    plan(from, options)?.open(to)?.run(&mut |_| Ok(()))
}

/// A conversion that has to be refused.
fn refusal(from: &Path, to: &Path, options: Options) -> Error {
    convert(from, to, options).unwrap_err()
}

/// All files of a folder.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// A folder beside nothing else, that is not there yet.
fn target() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("to");
    (dir, to)
}

#[test]
fn values_and_scales_are_what_the_formats_say() {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("config.json"), r#"{"model_type":"test"}"#).unwrap();
    let (row, zeros) = ([7.0, -7.0, 3.5, 0.0, 127.0, -127.0, 2.5, 1.0], [0.0; 8]);
    let numbers = || row.into_iter().chain(zeros);
    let tensors = [bf16("e.0", &[2, 8], numbers()), bf16("e.1", &[2, 8], numbers()), bf16("w", &[2, 8], numbers()), mixed("n", &[8])];
    save(&from.path().join("model.safetensors"), &tensors);
    let each = || ExpertView::PerExpert("e.{expert}".into());
    let mut description = experts(2, 8, 8, each(), each(), each());
    description.matrix("w", 2, 8, View::tensor("w"));
    description.vector("n", 8, View::tensor("n"));
    let checkpoint = open(from.path()).unwrap();
    let roles = Roles::of(&checkpoint, &description, |_| true);
    let options = Options { experts: Choice::As(Format::INT4_ROW), dense: Choice::As(Format::INT8_ROW) };
    let (_dir, to) = target();
    Conversion::plan(&checkpoint, &roles, options).unwrap().open(&to).unwrap().run(&mut |_| Ok(())).unwrap();
    let bytes = fs::read(to.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    // By hand. int8: the scale is 127 / 127 = 1, numbers are rounded half to even: 7, -7, 4, 0, 127, -127, 2, 1.
    let (values, scales) = (file.tensor("w").unwrap(), file.tensor("w.qs").unwrap());
    assert_eq!((values.dtype(), values.shape()), (Dtype::U8, &[2, 8][..]));
    assert_eq!(values.data(), [[7, 249, 4, 0, 127, 129, 2, 1], [0; 8]].concat());
    assert_eq!((scales.dtype(), scales.shape()), (Dtype::F32, &[2, 1][..]));
    assert_eq!(scales.data(), [1f32.to_le_bytes(), 0f32.to_le_bytes()].concat());
    // int4: the scale is 127 / 7; all but the two largest are 0. A number v is stored as v + 8, the even column in the low half.
    let (values, scales) = (file.tensor("e.1").unwrap(), file.tensor("e.1.qs").unwrap());
    assert_eq!((values.dtype(), values.shape()), (Dtype::U8, &[2, 4][..]));
    assert_eq!(values.data(), [[0x88, 0x88, 0x1f, 0x88], [0x88; 4]].concat());
    assert_eq!(scales.data(), [(127f32 / 7.0).to_le_bytes(), 0f32.to_le_bytes()].concat());
    assert_eq!((file.tensor("n").unwrap().dtype(), file.names().len()), (Dtype::BF16, 7));
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let note = |key: &str| serde_json::from_str::<Value>(&metadata.metadata().as_ref().unwrap()[key]).unwrap();
    assert_eq!(note(FORMATS), json!({"e.0": "int4-row", "e.1": "int4-row", "w": "int8-row"}));
    assert_eq!(note(SHAPES), json!({"e.0": [2, 8], "e.1": [2, 8], "w": [2, 8]}));
}

#[test]
fn a_folder_is_written_file_by_file_and_nothing_is_lost() {
    let (from, (_dir, to)) = (source(), target());
    let conversion = plan(from.path(), CHOSEN).unwrap();
    let figures = *conversion.figures();
    let tensors = [figures.experts, figures.dense, figures.kept, figures.unused].map(|figure| figure.tensors);
    // Two experts of three matrices and two fused tensors; table and head; norm, router and taps, for which scales would be too many.
    assert_eq!(tensors, [8, 2, 3, 1]);
    // 40 rows of 64 each, twice: of 128 bytes before, of 64 and a scale after.
    assert_eq!((figures.dense.before, figures.dense.after), (2 * 40 * 128, 2 * 40 * 68));
    let planned = conversion.bytes();
    conversion.open(&to).unwrap().run(&mut |_| Ok(())).unwrap();
    let files = contents(&to);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let shards = ["a-1-of-3.safetensors", "a-2-of-3.safetensors", "a-3-of-3.safetensors"];
    let others = ["chat_template.jinja", "config.json", "generation_config.json", "model.safetensors.index.json", "tokenizer.json"];
    assert_eq!(names, [&["LICENSE"][..], &shards, &others].concat());
    assert_eq!(conversion.left_out(), ["old.bin"]);
    let index = &files["model.safetensors.index.json"];
    assert_eq!(planned, files.values().map(|bytes| bytes.len() as u64).sum::<u64>() - index.len() as u64);
    let index: Value = serde_json::from_slice(index).unwrap();
    let mut listed = 0;
    for shard in shards {
        let bytes = &files[shard];
        let file = SafeTensors::deserialize(bytes).unwrap();
        for name in file.names() {
            assert_eq!(index["weight_map"][name], shard, "{name}");
            listed += 1;
        }
    }
    assert_eq!(listed, index["weight_map"].as_object().unwrap().len());
    let second = SafeTensors::deserialize(&files[shards[1]]).unwrap();
    assert_eq!(
        (second.tensor("1.gate_up").unwrap().shape(), second.tensor("1.gate_up.qs").unwrap().shape()),
        (&[2, 192, 32][..], &[2, 192, 1][..])
    );
    // Groups of 64 in rows of 96 are two, the last one short.
    assert_eq!(second.tensor("1.down.qs").unwrap().shape(), [2, 64, 2]);
    let (old, new) = (fs::read(from.path().join(shards[2])).unwrap(), &files[shards[2]]);
    let (old, new) = (SafeTensors::deserialize(&old).unwrap(), SafeTensors::deserialize(new).unwrap());
    for name in ["flags", "taps"] {
        assert_eq!(old.tensor(name).unwrap(), new.tensor(name).unwrap(), "{name}");
    }
}

/// Each number is off by at most half a step, which is the largest one of its group over 127 or 7; and a little for rounding.
#[test]
fn what_is_loaded_again_is_near_what_was_stored() {
    for (experts, dense) in [("int4-g64", "int8"), ("int4-row", "int8-g64"), ("int8", "int4-g64-planar"), ("f32", "keep")] {
        let (from, (_dir, to)) = (source(), target());
        convert(from.path(), &to, Options { experts: experts.parse().unwrap(), dense: dense.parse().unwrap() }).unwrap();
        let description = description();
        let [old, new] = [from.path(), &to].map(|dir| load(&open(dir).unwrap(), &description, &mut |_, _| Ok(())).unwrap());
        let half_step = |word: &str, largest: f32| match word {
            "keep" | "f32" => 0.0,
            word if word.starts_with("int8") => largest / 254.0,
            _ => largest / 14.0,
        };
        let check = |word: &str, old: WeightView<'_>, new: WeightView<'_>| {
            let group = if word.contains("g64") { 64 } else { old.cols() };
            for (old, new) in old.decode().chunks(old.cols()).zip(new.decode().chunks(old.cols())) {
                for (old, new) in old.chunks(group).zip(new.chunks(group)) {
                    let largest = old.iter().fold(0f32, |largest, number| largest.max(number.abs()));
                    let worst = old.iter().zip(new).fold(0f32, |worst, (old, new)| worst.max((old - new).abs()));
                    assert!(worst <= half_step(word, largest) * 1.001, "{word}: {worst} of {largest}");
                }
            }
        };
        for id in 0..5 {
            let word = if id < 2 { dense } else { "keep" };
            check(word, old.weight(WeightId(id)).unwrap(), new.weight(WeightId(id)).unwrap());
        }
        for (layer, expert, matrix) in
            (0..12).map(|at| (at / 6, at / 3 % 2, [ExpertMatrix::Gate, ExpertMatrix::Up, ExpertMatrix::Down][at as usize % 3]))
        {
            let view = |weights: &Weights| weights.expert(GroupId(0), layer, expert, matrix).unwrap().decode();
            assert!(experts == "f32" || view(&old) != view(&new));
            check(experts, old.expert(GroupId(0), layer, expert, matrix).unwrap(), new.expert(GroupId(0), layer, expert, matrix).unwrap());
        }
    }
}

#[test]
fn floats_are_plain_tensors() {
    let (from, (_dir, to)) = (source(), target());
    convert(from.path(), &to, Options { experts: Choice::Keep, dense: Choice::As(Format::F32) }).unwrap();
    let (old, new) = (source_file(from.path(), 3), source_file(&to, 3));
    let (old, new) = (SafeTensors::deserialize(&old).unwrap(), SafeTensors::deserialize(&new).unwrap());
    let (old, new) = (old.tensor("head").unwrap(), new.tensor("head").unwrap());
    assert_eq!((new.dtype(), new.shape()), (Dtype::F32, old.shape()));
    let wide: Vec<u8> = old.data().as_chunks::<2>().0.iter().flat_map(|pair| [0, 0, pair[0], pair[1]]).collect();
    assert_eq!(new.data(), wide);
    let (old, new) = (source_file(from.path(), 2), source_file(&to, 2));
    let (old, new) = (SafeTensors::deserialize(&old).unwrap(), SafeTensors::deserialize(&new).unwrap());
    assert_eq!(old.tensor("1.gate_up").unwrap(), new.tensor("1.gate_up").unwrap());
}

fn source_file(dir: &Path, number: usize) -> Vec<u8> {
    fs::read(dir.join(format!("a-{number}-of-3.safetensors"))).unwrap()
}

#[test]
fn every_stop_can_be_gone_on_from() {
    let (from, (_dir, whole)) = (source(), target());
    convert(from.path(), &whole, CHOSEN).unwrap();
    let whole = contents(&whole);
    let conversion = plan(from.path(), CHOSEN).unwrap();
    let (mut stops, mut ended) = (0, false);
    while !ended {
        let (_dir, to) = target();
        let mut heard = 0;
        let outcome = conversion.open(&to).unwrap().run(&mut |_| {
            heard += 1;
            if heard > stops { Err(Error::run("stop")) } else { Ok(()) }
        });
        ended = outcome.is_ok();
        if !ended {
            assert_eq!(outcome.unwrap_err().text, "stop");
            let files = contents(&to);
            assert!(files.contains_key(STATE) && !files.contains_key("config.json"), "{:?}", files.keys());
            assert!(files.keys().all(|name| !name.ends_with(disk::PARTIAL)), "{:?}", files.keys());
            let finished = files.keys().filter(|name| name.ends_with(".safetensors")).count();
            // What a kill would leave besides.
            for name in ["a-1-of-3.safetensors", "a-2-of-3.safetensors", "a-3-of-3.safetensors", "tokenizer.json", "config.json"] {
                fs::write(disk::partial(&to.join(name)), "half").unwrap();
            }
            fs::write(disk::partial(&to.join(format!("{STATE}.1"))), "half").unwrap();
            let folder = conversion.open(&to).unwrap();
            assert_eq!(folder.found(), finished);
            folder.run(&mut |_| Ok(())).unwrap();
        }
        assert!(contents(&to) == whole, "after a stop at {stops}");
        stops += 1;
    }
    assert!(stops > 20, "{stops}");
}

/// The moments between the last file of tensors and the end.
#[test]
fn a_kill_among_the_last_files_can_be_gone_on_from() {
    let (from, (_dir, whole)) = (source(), target());
    convert(from.path(), &whole, CHOSEN).unwrap();
    let files = contents(&whole);
    let conversion = plan(from.path(), CHOSEN).unwrap();
    let state = state::of(&conversion).to_string();
    let order =
        ["LICENSE", "chat_template.jinja", "generation_config.json", "tokenizer.json", "model.safetensors.index.json", "config.json"];
    for count in 0..=order.len() {
        let (_dir, to) = target();
        fs::create_dir(&to).unwrap();
        fs::write(to.join(STATE), &state).unwrap();
        let there = files.iter().filter(|(name, _)| name.ends_with(".safetensors") || order[..count].contains(&name.as_str()));
        there.for_each(|(name, bytes)| fs::write(to.join(name), bytes).unwrap());
        convert(from.path(), &to, CHOSEN).unwrap();
        assert!(contents(&to) == files, "{count}");
    }
    // Before the state file: nothing, or a part of it.
    let (_dir, to) = target();
    fs::create_dir(&to).unwrap();
    fs::write(disk::partial(&to.join(format!("{STATE}.77"))), "{").unwrap();
    convert(from.path(), &to, CHOSEN).unwrap();
    assert!(contents(&to) == files);
}

#[test]
fn what_is_there_is_never_overwritten() {
    let (from, (dir, to)) = (source(), target());
    let usage = |to: &Path, options: Options, words: &str| {
        let error = refusal(from.path(), to, options);
        assert_eq!(error.kind, Kind::Usage, "{error}");
        assert!(error.text.contains(words), "{error}");
    };
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    usage(&file, CHOSEN, "is not a folder");
    usage(dir.path(), CHOSEN, "exists and is no unfinished conversion");
    usage(&dir.path().join("none/to"), CHOSEN, "does not exist");
    usage(from.path(), CHOSEN, "exists and is no unfinished conversion");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert!(!to.exists() && !dir.path().join("none").exists());
    convert(from.path(), &to, CHOSEN).unwrap();
    let before = contents(&to);
    usage(&to, CHOSEN, "is a finished conversion, with --experts int4-g64 --dense int8-row");
    usage(&to, Options { dense: Choice::Keep, ..CHOSEN }, "is a finished conversion");
    assert!(contents(&to) == before);
    // A folder that holds nothing is as good as none.
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    convert(from.path(), &empty, CHOSEN).unwrap();
    assert!(contents(&empty) == before);
}

/// A conversion that stopped after its first file.
fn stopped(from: &Path, to: &Path) {
    let outcome = plan(from, CHOSEN).unwrap().open(to).unwrap().run(&mut |event| match event {
        Event::Wrote { .. } => Err(Error::run("stop")),
        Event::Advanced { .. } => Ok(()),
    });
    assert_eq!(outcome.unwrap_err().text, "stop");
}

#[test]
fn an_unfinished_conversion_is_gone_on_with_only_as_it_was_begun() {
    let (from, (_dir, to)) = (source(), target());
    stopped(from.path(), &to);
    let before = contents(&to);
    let usage = |options: Options, words: &str| {
        let error = refusal(from.path(), &to, options);
        assert_eq!(error.kind, Kind::Usage, "{error}");
        assert!(error.text.contains(words), "{error}");
        assert!(contents(&to) == before);
    };
    usage(Options { experts: Choice::As(Format::INT8_G64), ..CHOSEN }, "was begun with --experts int4-g64 --dense int8-row");
    let config = from.path().join("config.json");
    let (text, times) = (fs::read(&config).unwrap(), fs::metadata(&config).unwrap().modified().unwrap());
    fs::write(&config, r#"{"model_type":"test","more":1}"#).unwrap();
    usage(CHOSEN, "`config.json`");
    fs::write(&config, &text).unwrap();
    let file = fs::File::options().write(true).open(&config).unwrap();
    file.set_modified(times + std::time::Duration::from_secs(1)).unwrap();
    usage(CHOSEN, "`config.json`");
    file.set_modified(times).unwrap();
    // Another process.
    let lock = state::lock(&to).unwrap();
    let error = refusal(from.path(), &to, CHOSEN);
    assert!(error.text.contains("another coli"), "{error}");
    drop(lock);
    // A file that is none of ours.
    let second = to.join("a-2-of-3.safetensors");
    fs::write(&second, "mine").unwrap();
    let error = refusal(from.path(), &to, CHOSEN);
    assert!(error.text.contains("a-2-of-3.safetensors` is not what this conversion writes"), "{error}");
    assert_eq!(fs::read(&second).unwrap(), b"mine");
    fs::remove_file(&second).unwrap();
    // A state file that is none.
    let state = fs::read(to.join(STATE)).unwrap();
    fs::write(to.join(STATE), "half").unwrap();
    assert!(refusal(from.path(), &to, CHOSEN).text.contains("is not the state of a conversion"));
    fs::write(to.join(STATE), state).unwrap();
    convert(from.path(), &to, CHOSEN).unwrap();
}

#[test]
fn a_source_that_changes_meanwhile_is_an_error() {
    let (from, (_dir, to)) = (source(), target());
    let path = from.path().join("a-2-of-3.safetensors");
    let error = plan(from.path(), CHOSEN).unwrap().open(&to).unwrap().run(&mut |event| {
        if let Event::Wrote { .. } = event {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
        Ok(())
    });
    let error = error.unwrap_err();
    assert!(error.text.contains("a-2-of-3.safetensors` was changed while it was converted"), "{error}");
    let names: Vec<String> = contents(&to).into_keys().collect();
    assert_eq!(names, ["a-1-of-3.safetensors", STATE]);
}

#[test]
fn a_full_disk_is_told_before_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let error = folder::check_room(dir.path(), u64::MAX).unwrap_err();
    assert_eq!(error.kind, Kind::Run);
    assert!(error.text.contains("are needed") && error.text.contains("nothing was written or lost"), "{error}");
    assert!(folder::check_room(dir.path(), 0).unwrap().is_none_or(|free| free > 0));
}

#[test]
fn damage_is_seen_when_a_file_is_read_back() {
    let (from, dir) = (source(), tempfile::tempdir().unwrap());
    let conversion = plan(from.path(), CHOSEN).unwrap();
    let shard = &conversion.shards[2];
    let path = dir.path().join("x.partial");
    let digests = shard::write(shard, &path, &mut |_| Ok(())).unwrap();
    shard::verify(shard, &path, &digests, &mut |_| Ok(())).unwrap();
    let whole = fs::read(&path).unwrap();
    // A byte of everything: length, metadata, values, scales, what was copied.
    let damaged = (0..whole.len()).filter(|at| at % 97 == 0 || *at < 64 || *at + 64 > whole.len());
    for at in damaged {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        fs::write(&path, bytes).unwrap();
        let outcome = shard::verify(shard, &path, &digests, &mut |_| Ok(()));
        assert!(outcome.is_err(), "byte {at}");
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(shard::verify(shard, &path, &digests, &mut |_| Ok(())).is_err());
}

/// A model of one file; all of its weights may be encoded.
fn refused(tensors: &[Stored], change: impl FnOnce(&mut Vec<u8>)) -> String {
    let (from, (_dir, to)) = (tempfile::tempdir().unwrap(), target());
    fs::write(from.path().join("config.json"), r#"{"model_type":"test"}"#).unwrap();
    let path = from.path().join("model.safetensors");
    save(&path, tensors);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let mut description = Description::default();
    description.matrix("w", 2, 64, View::tensor("w"));
    let checkpoint = open(from.path()).unwrap();
    let roles = Roles::of(&checkpoint, &description, |_| true);
    let outcome = Conversion::plan(&checkpoint, &roles, CHOSEN).and_then(|conversion| conversion.open(&to)?.run(&mut |_| Ok(())));
    let error = outcome.unwrap_err();
    assert_eq!(error.kind, Kind::Refused, "{error}");
    assert!(contents_or_none(&to).is_none_or(|files| files.into_keys().eq([STATE])));
    error.text
}

fn contents_or_none(dir: &Path) -> Option<BTreeMap<String, Vec<u8>>> {
    dir.exists().then(|| contents(dir))
}

#[test]
fn what_cannot_be_encoded_is_refused_by_name() {
    let good = || mixed("w", &[2, 64]);
    let with = |number: f32| bf16("w", &[2, 64], (0..128).map(move |at| if at == 100 { number } else { 1.0 }));
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let text = refused(&[with(number)], |_| ());
        assert!(text.contains("tensor `w`") && text.contains("row 1 has a number that is not finite"), "{text}");
    }
    let text = refused(&[Stored::raw("w", Dtype::I16, &[2, 64], vec![1; 256])], |_| ());
    assert!(text.contains("tensor `w` is stored as i16"), "{text}");
    let text = refused(&[good(), mixed("w.qs", &[3])], |_| ());
    assert!(text.contains("two tensors of the result would be named `w.qs`"), "{text}");
}

#[test]
fn roles_follow_from_the_description() {
    let from = source();
    let checkpoint = open(from.path()).unwrap();
    let roles = |change: &dyn Fn(&mut Description)| {
        let mut description = description();
        change(&mut description);
        let roles = Roles::of(&checkpoint, &description, |id| id.0 < 3 || id.0 > 4);
        ["table", "head", "router", "norm", "0.1.up", "1.gate_up", "flags", "taps"].map(|name| roles.get(name))
    };
    let [kept, dense, expert] = [Role::Kept, Role::Dense, Role::Expert].map(Some);
    assert_eq!(roles(&|_| ()), [dense, dense, kept, kept, expert, expert, None, dense]);
    // A vector of a table's numbers, and rows that are longer than stored ones: another use, which is the more careful one.
    let flat = |d: &mut Description| {
        d.vector("x", 2560, View::tensor("table").flat());
    };
    assert_eq!(roles(&flat)[0], kept);
    let wide = |d: &mut Description| {
        d.matrix("x", 1, 2560, View::tensor("table").flat());
    };
    assert_eq!(roles(&wide)[0], kept);
    // What is joined with a kept tensor is kept, and what is joined with that.
    let chain = |d: &mut Description| {
        d.matrix("x", 80, 64, View::Concat(vec![View::tensor("table"), View::tensor("head")]));
        d.matrix("y", 42, 64, View::Concat(vec![View::tensor("head"), View::tensor("router")]));
    };
    assert_eq!(roles(&chain)[..2], [kept, kept]);
    // Experts that are used as something else too.
    let both = |d: &mut Description| {
        d.matrix("x", 96, 64, View::tensor("0.1.up"));
    };
    assert_eq!(roles(&both)[4], kept);
}

#[test]
fn choices_are_words() {
    for (text, choice) in
        [("keep", Choice::Keep), ("int8", Choice::As(Format::INT8_ROW)), ("int4-g64-planar", Choice::As(Format::INT4_G64_PLANAR))]
    {
        assert_eq!(text.parse(), Ok(choice));
    }
    for format in Choice::formats() {
        assert_eq!(format.name().parse(), Ok(Choice::As(format)));
    }
    for text in ["", "int5", "q4_0", "INT8", "fp8-row-f32"] {
        assert!(text.parse::<Choice>().unwrap_err().contains("int4-g64"), "{text}");
    }
}

/// Names of the source that come to mean something beside encoded tensors.
#[test]
fn a_result_that_could_not_be_read_is_refused_before_anything_is_written() {
    for (extra, says) in [("table.qs", "would be named `table.qs`"), ("table_scale", "has scales twice")] {
        let from = source();
        // Another file than the table's.
        save(&from.path().join("b.safetensors"), &[Stored::f32(extra, &[40])]);
        let index = from.path().join("model.safetensors.index.json");
        let mut map: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
        map["weight_map"][extra] = json!("b.safetensors");
        fs::write(&index, map.to_string()).unwrap();
        let parent = tempfile::tempdir().unwrap();
        let to = parent.path().join("to");
        let error = refusal(from.path(), &to, CHOSEN);
        assert!(error.kind == Kind::Refused && error.text.contains(says), "{error}");
        assert!(!to.exists());
    }
}
