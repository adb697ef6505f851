//! Hand-made files: what is read, and a refusal for everything that a file may claim wrongly.

use std::path::{Path, PathBuf};

use coli_base::Kind;
use coli_plugin_api::describe::{Container, View};
use coli_plugin_api::program::WeightId;
use coli_shaders::contract::WeightStore as _;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::{List, Value};
use crate::testing::describe;
use crate::{Checkpoint, Plan};

const U8: u32 = 0;
const U16: u32 = 2;
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const TEXT: u32 = 8;
const LIST: u32 = 9;

/// A file in the making.
#[derive(Clone, Default)]
struct Made {
    version: u32,
    keys: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
    alignment: usize,
    /// Counts that differ from what is there.
    claims: (i64, i64),
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// The value of a list: type, claimed length, values.
fn list(kind: u32, len: u64, values: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &len.to_le_bytes(), values].concat()
}

fn made() -> Made {
    Made { version: 3, alignment: 32, ..Made::default() }.key("general.architecture", TEXT, &text("test"))
}

impl Made {
    fn key(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.keys.push([&text(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    /// A tensor with these dimensions, innermost first, and its bytes at the next aligned place.
    fn tensor(mut self, name: &str, ne: &[u64], kind: u32, bytes: &[u8]) -> Self {
        self.data.resize(self.data.len().next_multiple_of(self.alignment), 0);
        let offset = self.data.len() as u64;
        self.data.extend(bytes);
        self.info(name, ne, kind, offset)
    }

    fn info(mut self, name: &str, ne: &[u64], kind: u32, offset: u64) -> Self {
        let dims = ne.iter().flat_map(|dim| dim.to_le_bytes()).collect::<Vec<u8>>();
        self.tensors.push([&text(name)[..], &(ne.len() as u32).to_le_bytes(), &dims, &kind.to_le_bytes(), &offset.to_le_bytes()].concat());
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as i64 + self.claims.0).to_le_bytes());
        bytes.extend((self.keys.len() as i64 + self.claims.1).to_le_bytes());
        bytes.extend(self.keys.concat());
        bytes.extend(self.tensors.concat());
        bytes.resize(bytes.len().next_multiple_of(self.alignment), 0);
        bytes.extend(&self.data);
        bytes
    }

    fn save(&self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }

    fn open(&self) -> (TempDir, coli_base::Result<Checkpoint>) {
        let dir = tempfile::tempdir().unwrap();
        let opened = crate::open(&self.save(dir.path(), "x.gguf"));
        (dir, opened)
    }
}

fn numbers(from: u32, count: u32) -> Vec<u8> {
    (from..from + count).flat_map(|number| (number as f32).to_le_bytes()).collect()
}

fn refusal(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gguf");
    std::fs::write(&path, bytes).unwrap();
    let error = crate::open(&path).unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    error.text.strip_prefix(&format!("`{}`: ", path.display())).unwrap_or_else(|| panic!("{error}")).to_owned()
}

fn refused(made: &Made, says: &str) {
    let text = refusal(&made.bytes());
    assert!(text.contains(says), "{text:?} does not say {says:?}");
}

#[test]
fn a_file_is_a_model() {
    let made = made()
        .key("test.eps", F32, &1e-5f32.to_le_bytes())
        .key("test.heads", LIST, &list(I32, 2, &[4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]))
        .key("test.flag", BOOL, &[1])
        .key("tokenizer.ggml.tokens", LIST, &list(TEXT, 2, &[text("a"), text("é")].concat()))
        .key("tokenizer.ggml.scores", LIST, &list(F32, 1, &2f32.to_le_bytes()))
        .tensor("m", &[3, 2], 0, &numbers(0, 6))
        .tensor("a", &[4], 1, &[0; 8]);
    let (_dir, checkpoint) = made.open();
    let checkpoint = checkpoint.unwrap();
    assert_eq!((checkpoint.container(), checkpoint.model_type().unwrap()), (Container::Gguf, "test"));
    let config = json!({"general.architecture": "test", "test.eps": 1e-5, "test.flag": true, "test.heads": [4, -1]});
    assert_eq!(*checkpoint.config(), config);
    assert_eq!(checkpoint.metadata("tokenizer.ggml.tokens").unwrap().as_texts().unwrap(), ["a", "é"]);
    assert_eq!(checkpoint.metadata("tokenizer.ggml.scores").unwrap().as_f32s().unwrap(), [2.0]);
    assert_eq!(checkpoint.metadata("test.heads").unwrap().as_signed().unwrap(), [4, -1]);
    assert_eq!(checkpoint.metadata("none"), None);
    let facts: Vec<_> = checkpoint.facts().into_iter().map(|fact| (fact.name, fact.kind, fact.shape)).collect();
    assert_eq!(facts, [("a".into(), "f16".into(), vec![4]), ("m".into(), "f32".into(), vec![2, 3])]);
    let row = View::Rows { of: Box::new(View::tensor("m")), start: 1, count: 1, step: 1 };
    let weights = Plan::new(&checkpoint, &describe(&[1, 3], row)).unwrap().load(&mut |_, _| Ok(())).unwrap();
    assert_eq!(weights.weight(WeightId(0)).unwrap().decode(), [3.0, 4.0, 5.0]);
}

#[test]
fn a_file_is_known_by_its_first_bytes_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = made().save(dir.path(), "sha256-0123");
    let checkpoint = crate::open(&path).unwrap();
    assert_eq!((checkpoint.path(), checkpoint.dir()), (path.as_path(), dir.path()));
    assert!(checkpoint.is_part(&path) && !checkpoint.is_part(&dir.path().join("config.json")));
    assert_eq!(checkpoint.optional_object("generation_config.json").unwrap(), None);
    let other = Made { version: 2, keys: vec![], ..made() }.save(dir.path(), "two.GGUF");
    assert!(crate::open(&other).unwrap().model_type().unwrap_err().text.ends_with("two.GGUF` has no general.architecture"));
    let number = Made { keys: vec![], ..made() }.key("general.architecture", U8, &[3]).save(dir.path(), "number.gguf");
    assert!(crate::open(&number).unwrap().model_type().unwrap_err().text.ends_with("general.architecture is 3, not a name"));
}

#[test]
fn every_type_of_value_is_read() {
    let little = |numbers: &[i64], width: usize| numbers.iter().flat_map(|n| n.to_le_bytes()[..width].to_vec()).collect::<Vec<u8>>();
    for (kind, width, signed) in
        [(0, 1, false), (1, 1, true), (2, 2, false), (3, 2, true), (4, 4, false), (5, 4, true), (10, 8, false), (11, 8, true)]
    {
        let all = list(kind, 2, &little(&[1, -1], width));
        let made = made().key("one", kind, &little(&[-1], width)).key("all", LIST, &all);
        let checkpoint = made.open().1.unwrap();
        let most = u64::MAX >> (64 - 8 * width);
        let (one, expected) = match (signed, kind) {
            (true, _) => (Value::Signed(-1), List::Signed(vec![1, -1])),
            (false, U8) => (Value::Unsigned(most), List::Bytes(vec![1, 255])),
            (false, _) => (Value::Unsigned(most), List::Unsigned(vec![1, most])),
        };
        assert_eq!(checkpoint.metadata("one"), Some(&one));
        assert_eq!(checkpoint.metadata("all"), Some(&Value::List(expected)), "{kind}");
        assert_eq!(checkpoint.config()["all"][0], 1);
    }
    let f64s = [1.5f64.to_le_bytes(), f64::NAN.to_le_bytes()].concat();
    let nested = list(LIST, 2, &[list(BOOL, 2, &[0, 1]), list(TEXT, 0, &[])].concat());
    let made = made().key("f64", 12, &f64s[..8]).key("f64s", LIST, &list(12, 2, &f64s)).key("nested", LIST, &nested);
    let checkpoint = made.key("f32s", LIST, &list(F32, 1, &0.1f32.to_le_bytes())).key("bool", BOOL, &[0]).open().1.unwrap();
    let config = checkpoint.config();
    assert_eq!((&config["f64"], &config["f64s"], &config["bool"]), (&json!(1.5), &json!([1.5, null]), &json!(false)));
    assert_eq!((&config["nested"], &config["f32s"]), (&json!([[false, true], []]), &json!([0.1])));
}

#[test]
fn what_is_no_gguf_is_refused() {
    for bytes in [&b""[..], b"GGU", b"GGUF", b"GGUF\x03\0\0", b"GGML\x03\0\0\0"] {
        assert!(refusal(bytes).contains(&format!("not a GGUF file: its {} bytes", bytes.len())));
    }
    refused(&Made { version: 1, ..made() }, "GGUF version 1; versions 2 and 3 are read");
    refused(&Made { version: 4, ..made() }, "GGUF version 4;");
    refused(&Made { version: 3u32.swap_bytes(), ..made() }, "big-endian");
    let whole = made().tensor("m", &[3, 2], 0, &numbers(0, 6)).bytes();
    for end in 8..whole.len() {
        let text = refusal(&whole[..end]);
        assert!(text.contains("truncated"), "{end}: {text}");
    }
}

#[test]
fn false_counts_are_refused() {
    refused(&Made { claims: (0, i64::MAX - 1), ..made() }, "metadata: truncated or damaged: 9223372036854775807 keys");
    refused(&Made { claims: (0, -2), ..made() }, "18446744073709551615 keys");
    refused(&Made { claims: (i64::MAX, 0), ..made() }, "9223372036854775807 tensors");
    refused(&Made { claims: (1, 0), ..made() }, "truncated");
    let long = |len: u64| [&len.to_le_bytes()[..], b"abc"].concat();
    refused(&made().key("k", TEXT, &long(u64::MAX)), "`k`: truncated or damaged: the 18446744073709551615 bytes of a text at byte");
    refused(&made().key("k", TEXT, &long(1 << 40)), "the 1099511627776 bytes of a text");
    for kind in [U8, U32, 12, BOOL, TEXT, LIST] {
        refused(&made().key("k", LIST, &list(kind, 1 << 61, &[])), "the 2305843009213693952 values of a list");
        refused(&made().key("k", LIST, &list(kind, u64::MAX, &[])), "values of a list");
    }
    let mut sparse = made().key("k", LIST, &list(U8, 1 << 30, &[])).bytes();
    let dir = tempfile::tempdir().unwrap();
    sparse.resize(100, 0);
    let path = dir.path().join("x.gguf");
    std::fs::write(&path, sparse).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(crate::open(&path).unwrap_err().text.contains("beyond the 134217728 bytes that a header may have"));
}

#[test]
fn bad_values_are_refused() {
    refused(&made().key("k", 13, &[]), "`k`: 13 at byte");
    refused(&made().key("k", LIST, &list(13, 0, &[])), "13 at byte");
    refused(&made().key("k", BOOL, &[2]), "`k`: 2 at byte");
    refused(&made().key("k", LIST, &list(BOOL, 1, &[7])), "no truth value");
    refused(&made().key("k", TEXT, &[1, 0, 0, 0, 0, 0, 0, 0, 0xff]), "is not UTF-8");
    refused(&made().key("k", U8, &[1]).key("k", U8, &[1]), "`k` is there twice");
    refused(&made().key("", U8, &[1]), "a key of 0 bytes");
    refused(&made().key(&"k".repeat(65_536), U8, &[1]), "a key of 65536 bytes");
    let nested = |depth: usize| (1..depth).fold(list(U8, 0, &[]), |inner, _| list(LIST, 1, &inner));
    assert!(made().key("k", LIST, &nested(8)).open().1.is_ok());
    refused(&made().key("k", LIST, &nested(9)), "nested more than 8 deep");
    let many = vec![0; (1 << 20) + 1];
    refused(&made().key("k", LIST, &list(U8, many.len() as u64, &many)), "values besides the tokenizer's");
    assert!(made().key("tokenizer.ggml.precompiled_charsmap", LIST, &list(U8, many.len() as u64, &many)).open().1.is_ok());
}

#[test]
fn the_alignment_is_believed_if_it_is_one() {
    let with = |value: &[u8], kind: u32| made().key("general.alignment", kind, value);
    for (value, shown) in [(0u32, "is 0, not"), (3, "is 3, not"), (48, "is 48, not")] {
        refused(&with(&value.to_le_bytes(), U32), shown);
    }
    refused(&with(&text("32"), TEXT), "`general.alignment` is no whole number");
    let made = Made { alignment: 256, ..with(&256u32.to_le_bytes(), U32) };
    let made = made.tensor("a", &[1], 0, &numbers(7, 1)).tensor("b", &[1], 0, &numbers(8, 1));
    let checkpoint = made.open().1.unwrap();
    assert!(checkpoint.tensors().iter().all(|tensor| tensor.values.offset % 256 == 0));
    let weights = Plan::new(&checkpoint, &describe(&[1], View::tensor("b"))).unwrap().load(&mut |_, _| Ok(())).unwrap();
    assert_eq!(weights.weight(WeightId(0)).unwrap().decode(), [8.0]);
}

#[test]
fn false_tensors_are_refused_by_name() {
    let one = |ne: &[u64], kind: u32, offset: u64| Made { data: vec![0; 64], ..made() }.info("t", ne, kind, offset);
    refused(&one(&[16, 1, 1, 1, 1], 0, 0), "tensor `t`: 5 dimensions, at most 4");
    refused(&one(&[17], 0, 0), "tensor `t`: truncated: it ends at byte");
    refused(&one(&[4], 0, 96), "tensor `t`: truncated");
    refused(&one(&[4], 0, 0u64.wrapping_sub(32)), "tensor `t`: truncated");
    refused(&one(&[0], 0, 96), "tensor `t`: truncated");
    refused(&one(&[4], 77, 96), "tensor `t`: truncated");
    refused(&one(&[4], 0, 4), "its offset 4 is no multiple of the alignment 32");
    refused(&one(&[1 << 32, 1 << 32], 0, 0), "are absurd");
    refused(&one(&[1 << 62, 1], 0, 0), "are absurd");
    refused(&one(&[1 << 32, 1 << 32, 0], 0, 0), "are absurd");
    refused(&one(&[16, 2], 8, 0), "rows of 16 numbers are no whole blocks of 32 (q8_0)");
    refused(&one(&[32, 2], 8, 0), "it ends at byte");
    let twice = one(&[4], 0, 0).info("t", &[4], 0, 32);
    refused(&twice, "tensor `t` is there twice");
    refused(&one(&[9], 0, 0).info("u", &[4], 0, 32), "tensor `u`: it begins within tensor `t`");
    refused(&one(&[4], 0, 0).info("u", &[2], 0, 0), "tensor `t`: it begins within tensor `u`");
    assert!(one(&[0, 3], 0, 0).info("u", &[8], 0, 0).info("v", &[4], 0, 32).open().1.is_ok());
}

#[test]
fn unknown_types_are_refused_where_they_are_used() {
    let made = made().tensor("q", &[32, 2], 77, &[0; 40]).tensor("b", &[2], 0, &numbers(5, 2)).tensor("i", &[4], 26, &[0; 16]);
    let checkpoint = made.open().1.unwrap();
    let tensors: Vec<_> = checkpoint.tensors().iter().map(|tensor| (tensor.kind.as_str(), tensor.bytes)).collect();
    assert_eq!(tensors, [("f32", 8), ("i32", 16), ("ggml-type-77", 64)]);
    assert!(Plan::new(&checkpoint, &describe(&[2], View::tensor("b"))).is_ok());
    for (name, kind) in [("q", "ggml-type-77"), ("i", "i32")] {
        let error = Plan::new(&checkpoint, &describe(&[2, 32], View::tensor(name))).unwrap_err();
        assert!(
            error
                .text
                .contains(&format!("tensor `{name}` is stored as {kind}, which coli does not read; use bf16, f16, f32 or a GGUF file")),
            "{error}"
        );
    }
}

#[test]
fn rows_of_blocks_are_cut_whole() {
    // Three rows of 32: a scale of 1 and 32 codes each.
    let row = |code: u8| [&[0, 0x3c][..], &[code; 32]].concat();
    let made = made().tensor("q", &[32, 3], 8, &[row(1), row(2), row(3)].concat()).tensor("v", &[32], 8, &row(4));
    let checkpoint = made.open().1.unwrap();
    let plan = |shape: &[u32], view: View| Plan::new(&checkpoint, &describe(shape, view));
    let rows = |of: View, start: u32, count: u32| View::Rows { of: Box::new(of), start, count, step: 1 };
    let weights = plan(&[2, 32], rows(View::tensor("q"), 1, 2)).unwrap().load(&mut |_, _| Ok(())).unwrap();
    let decoded = weights.weight(WeightId(0)).unwrap().decode();
    assert_eq!((decoded[..32].to_vec(), decoded[32..].to_vec()), (vec![2.0; 32], vec![3.0; 32]));
    let all = plan(&[96], View::tensor("q").flat()).unwrap().load(&mut |_, _| Ok(())).unwrap();
    assert_eq!(all.weight(WeightId(0)).unwrap().decode()[95], 3.0);
    assert!(plan(&[32], View::tensor("v")).is_ok());
    for view in [rows(View::tensor("v"), 0, 32), rows(View::tensor("q").flat(), 0, 32)] {
        assert!(plan(&[32], view).unwrap_err().text.contains("a vector in q8_0 has no single numbers to take"));
    }
    assert!(plan(&[32, 1], View::tensor("v")).unwrap_err().text.contains("is stored in q8_0, which has no rows of 1"));
}

/// A split model of two parts; `alter` may change a part before it is written.
fn split(alter: impl Fn(usize, Made) -> Made) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for part in 0..2usize {
        let made = if part == 0 { made() } else { Made { keys: vec![], ..made() } };
        let made = made
            .key("split.no", U16, &(part as u16).to_le_bytes())
            .key("split.count", U16, &2u16.to_le_bytes())
            .key("split.tensors.count", I32, &2i32.to_le_bytes())
            .tensor(["b", "a"][part], &[2], 0, &numbers(part as u32, 2));
        alter(part, made).save(dir.path(), &format!("m-0000{}-of-00002.gguf", part + 1));
    }
    dir
}

#[test]
fn any_part_opens_all() {
    let dir = split(|_, made| made);
    for part in 1..=2 {
        let path = dir.path().join(format!("m-0000{part}-of-00002.gguf"));
        let checkpoint = crate::open(&path).unwrap();
        assert_eq!((checkpoint.model_type().unwrap(), checkpoint.tensors().len()), ("test", 2));
        let weights = Plan::new(&checkpoint, &describe(&[2], View::tensor("a"))).unwrap().load(&mut |_, _| Ok(())).unwrap();
        assert_eq!(weights.weight(WeightId(0)).unwrap().decode(), [1.0, 2.0]);
        assert!(checkpoint.is_part(&dir.path().join("m-00002-of-00002.gguf")));
    }
}

#[test]
fn false_splits_are_refused() {
    let refused = |dir: &TempDir, name: &str, says: &str| {
        let error = crate::open(&dir.path().join(name)).unwrap_err();
        assert!(error.kind == Kind::Refused && error.text.contains(says), "{error}");
    };
    let (first, second) = ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf");
    let dir = split(|_, made| made);
    std::fs::rename(dir.path().join(first), dir.path().join("first.gguf")).unwrap();
    refused(&dir, "first.gguf", "part 1 of 2 is not named like `NAME-00001-of-00002.gguf`");
    refused(&dir, second, "m-00001-of-00002.gguf` is missing: a split model");
    let numbered = |number: u16, count: u16| {
        split(move |part, made| {
            let old = std::mem::take(&mut made.clone().keys);
            let keys = old.into_iter().filter(|key| part == 0 || !key.windows(6).any(|w| w == b"split.")).collect();
            let made = Made { keys, ..made };
            if part == 0 { made } else { made.key("split.no", U16, &number.to_le_bytes()).key("split.count", U16, &count.to_le_bytes()) }
        })
    };
    refused(&numbered(0, 2), first, "`split.no` is 0, its name and the other parts say 1");
    refused(&numbered(1, 3), first, "`split.count` is 3, its name and the other parts say 2");
    refused(&numbered(7, 3), second, "its metadata says that it is part 8 of 3");
    refused(&split(|part, made| if part == 0 { made } else { Made { keys: vec![], ..made } }), first, "`split.no` is missing");
    refused(&split(|part, made| if part == 0 { made } else { made.tensor("b", &[1], 0, &numbers(0, 1)) }), first, "tensor `b` is in both");
    refused(
        &split(|part, made| if part == 0 { made } else { made.tensor("c", &[1], 0, &numbers(0, 1)) }),
        first,
        "its parts have 3 tensors",
    );
    let alone = made().key("split.count", U16, &3u16.to_le_bytes()).key("split.no", U16, &[0, 0]).save(dir.path(), "m-00001-of-00003.gguf");
    refused(&dir, alone.file_name().unwrap().to_str().unwrap(), "m-00002-of-00003.gguf` and 1 more parts are missing: a split model");
    made().key("split.count", TEXT, &text("x")).save(dir.path(), "text.gguf");
    refused(&dir, "text.gguf", "text.gguf`");
}

/// Opens the bytes, and reads what is accepted.
fn holds(bytes: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gguf");
    std::fs::write(&path, bytes).unwrap();
    let Ok(checkpoint) = crate::open(&path) else { return };
    let held: u64 = checkpoint.tensors().iter().map(|tensor| tensor.bytes).sum();
    assert!(held <= bytes.len() as u64);
    for tensor in checkpoint.tensors() {
        assert!(tensor.values.offset + tensor.bytes <= bytes.len() as u64);
        if let [len] = tensor.shape[..] {
            let plan = Plan::new(&checkpoint, &describe(&[len as u32], View::tensor(&tensor.name)));
            if let Ok(plan) = plan {
                plan.load(&mut |_, _| Ok(())).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        holds(&bytes);
        holds(&[b"GGUF\x03\0\0\0", &bytes[..]].concat());
    }

    #[test]
    fn no_damage_panics(changes in prop::collection::vec((0usize..400, any::<u8>()), 1..4), end in 0usize..400) {
        let made = made()
            .key("list", LIST, &list(TEXT, 2, &[text("a"), text("b")].concat()))
            .key("split.count", U16, &[1, 0])
            .tensor("m", &[4], 0, &numbers(0, 4))
            .tensor("n", &[8], 1, &[0; 16]);
        let mut bytes = made.bytes();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        holds(&bytes);
        holds(&bytes[..end.min(bytes.len())]);
    }
}
