//! Tests of manifests: every key, and every refusal.

use super::*;
use proptest::prelude::*;

const GOOD: &str = r#"
id = "olmoe"
version = "0.1.0"
abi = "0.0"
model_types = ["olmoe"]
ops = ["norm@1", "matmul@2"]
library = "coli_olmoe"
"#;

/// The good manifest with the line of one key replaced, or with a line more.
fn with(key: &str, line: &str) -> String {
    let begins = |text: &&str| text.starts_with(&format!("{key} "));
    let mut lines: Vec<&str> = GOOD.lines().filter(|text| !begins(text)).collect();
    lines.push(line);
    lines.join("\n")
}

#[test]
fn a_good_manifest_is_read_with_its_defaults() {
    let manifest = Manifest::parse(GOOD).unwrap();
    assert_eq!(manifest.abi, AbiVersion { major: 0, minor: 0 });
    assert_eq!((manifest.id.as_str(), manifest.version.as_str()), ("olmoe", "0.1.0"));
    assert_eq!(manifest.ops, ["norm@1", "matmul@2"]);
    assert!(manifest.gguf_architectures.is_empty() && !manifest.needs_tokenizer);
    assert!(manifest.own_ops.is_empty() && manifest.host_ops().count() == 2);
    assert!(manifest.library_file().contains("coli_olmoe") && manifest.library_file() != "coli_olmoe");
    let only_gguf = with("model_types", "gguf_architectures = [\"olmoe\"]\nneeds_tokenizer = true");
    let manifest = Manifest::parse(&only_gguf).unwrap();
    assert!(manifest.needs_tokenizer && manifest.model_types.is_empty());
}

#[test]
fn an_op_of_its_own_is_not_asked_of_the_host() {
    let manifest = Manifest::parse(&with("ops", "ops = [\"norm@1\", \"a.b@1\", \"c.d@1\"]\nown_ops = [\"a.b@1\"]")).unwrap();
    assert_eq!(manifest.own_ops, ["a.b@1"]);
    assert_eq!(manifest.host_ops().collect::<Vec<_>>(), ["norm@1", "c.d@1"]);
}

#[test]
fn every_key_is_checked_and_named() {
    let cases = [
        ("id", ""),
        ("id", "id = 3"),
        ("id", "id = \"\""),
        ("id", "id = \"Olmoe\""),
        ("id", "id = \"../x\""),
        ("id", "id = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""),
        ("version", ""),
        ("version", "version = \"v1\""),
        ("version", "version = \"1\\n2\""),
        ("abi", ""),
        ("abi", "abi = 0.0"),
        ("abi", "abi = \"0\""),
        ("abi", "abi = \"0.0.0\""),
        ("abi", "abi = \"00.0\""),
        ("abi", "abi = \"0.+1\""),
        ("abi", "abi = \"4294967296.0\""),
        ("model_types", ""),
        ("model_types", "model_types = []"),
        ("model_types", "model_types = \"olmoe\""),
        ("model_types", "model_types = [\"olmoe\", 3]"),
        ("model_types", "model_types = [\"a b\"]"),
        ("model_types", "model_types = [\"olmoe\", \"olmoe\"]"),
        ("gguf_architectures", "gguf_architectures = {}"),
        ("ops", ""),
        ("ops", "ops = [\"norm\"]"),
        ("ops", "ops = [\"norm@\"]"),
        ("ops", "ops = [\"norm@01\"]"),
        ("ops", "ops = [\"norm@1@1\"]"),
        ("ops", "ops = [\"No rm@1\"]"),
        ("ops", "ops = [\"@1\"]"),
        ("own_ops", "own_ops = \"a.b@1\""),
        ("own_ops", "own_ops = [\"decay@1\"]"),
        ("own_ops", "own_ops = [\"a.b\"]"),
        ("own_ops", "own_ops = [\"a.b@1\", \"a.b@1\"]"),
        ("library", ""),
        ("library", "library = \"../evil\""),
        ("library", "library = \"a/b\""),
        ("library", "library = 'a\\b'"),
        ("library", "library = \"libx.so\""),
        ("library", "library = \"\""),
        ("needs_tokenizer", "needs_tokenizer = \"yes\""),
        ("surprise", "surprise = 1"),
    ];
    for (key, line) in cases {
        let error = Manifest::parse(&with(key, line)).unwrap_err();
        assert!(error.contains(&format!("`{key}`")), "{line:?}: {error}");
        assert!(error.contains("expected") || error.contains("twice"), "{line:?}: {error}");
        assert!(!error.contains('\n'), "{line:?}: {error}");
    }
}

#[test]
fn what_is_not_toml_is_named_by_line() {
    for (text, line) in [("id = \"olmoe\"\nversion = ", "line 2"), ("\u{7f}ELF", "line 1"), ("id = 1\nid = 2", "line 2")] {
        let error = Manifest::parse(text).unwrap_err();
        assert!(error.contains(line) && error.contains("not TOML") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_file_is_bounded_and_must_be_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.plugin.toml");
    let refusal = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Manifest::read(&path).unwrap_err().text
    };
    let padded = |len: usize| format!("{GOOD}{}", "#".repeat(len - GOOD.len())).into_bytes();
    assert!(refusal(&padded((64 << 10) + 1)).contains("larger than the 64 KiB"));
    assert!(refusal(b"\xff\xfe").contains("UTF-8"));
    assert!(refusal(b"id = 3").starts_with(&path.display().to_string()));
    std::fs::write(&path, padded(64 << 10)).unwrap();
    assert_eq!(Manifest::read(&path).unwrap().id, "olmoe");
    assert!(Manifest::read(folder.path()).unwrap_err().text.contains("not a file"));
    assert!(Manifest::read(&folder.path().join("absent")).unwrap_err().text.contains("cannot be read"));
}

/// What any text gives: a manifest whose names are safe to look for, or one short line.
fn holds(text: &str) {
    match Manifest::parse(text) {
        Ok(manifest) => assert!(!manifest.library_file().contains(['/', '\\'])),
        Err(why) => assert!(why.len() < 4096 && !why.contains('\n'), "{why}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_text_is_a_manifest_or_one_line(text in any::<String>(), key in 0..KEYS.len(), value in "[\\PC\n]{0,40}") {
        holds(&text);
        holds(&with(KEYS[key], &format!("{} = {value}", KEYS[key])));
        holds(&with(KEYS[key], &format!("{} = {value:?}", KEYS[key])));
    }

    #[test]
    fn a_damaged_manifest_is_a_manifest_or_one_line(changes in prop::collection::vec((0..GOOD.len(), any::<char>()), 1..4)) {
        let mut text: Vec<char> = GOOD.chars().collect();
        changes.into_iter().for_each(|(at, char)| text[at] = char);
        holds(&text.into_iter().collect::<String>());
    }
}
