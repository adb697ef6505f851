//! Tokenizers from metadata against those from `tokenizer.json`: `reference/` has both, written by libraries that nobody here wrote.

#[path = "odd.rs"]
mod odd;

use std::fs::File;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use coli_base::Kind;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::*;
use crate::testing::{demo, demo_cases, parse};
use crate::{ChatTemplate, Message, StopIds};
use odd::Odd;

const STRINGS: usize = 10_000;

fn reference(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("reference").join(name).with_extension("json.gz");
    serde_json::from_reader(GzDecoder::new(File::open(path).unwrap())).unwrap()
}

/// The metadata as the app would fill it.
fn metadata(json: &Value) -> GgufTokenizer {
    let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
    let texts = |key: &str| list(key).iter().map(|text| text.as_str().unwrap().to_owned()).collect();
    let id = |key: &str| json[key].as_u64().map(|id| u32::try_from(id).unwrap());
    GgufTokenizer {
        model: json["model"].as_str().unwrap().into(),
        pre: json["pre"].as_str().map(str::to_owned),
        tokens: texts("tokens"),
        scores: list("scores").iter().map(|score| score.as_f64().unwrap() as f32).collect(),
        token_types: list("token_types").iter().map(|kind| kind.as_i64().unwrap() as i32).collect(),
        merges: texts("merges"),
        bos: id("bos"),
        eos: id("eos"),
        unk: id("unk"),
        pad: id("pad"),
        add_bos: json["add_bos"].as_bool(),
        add_eos: json["add_eos"].as_bool(),
        add_space_prefix: json["add_space_prefix"].as_bool(),
        remove_extra_whitespaces: json["remove_extra_whitespaces"].as_bool(),
        ..GgufTokenizer::default()
    }
}

/// What base64 text stands for; four characters are three bytes.
fn bytes(base64: &str) -> Vec<u8> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = base64.trim_end_matches('=').chars().map(|digit| ALPHABET.find(digit).unwrap() as u32).collect();
    let group = |group: &[u32]| {
        let number = group.iter().fold(0, |number, digit| (number << 6) | digit) << (6 * (4 - group.len()));
        number.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

/// Both forms of one tokenizer.
fn both(name: &str) -> (GgufTokenizer, Tokenizer) {
    let json = reference(name);
    let mut gguf = metadata(&json["gguf"]);
    gguf.charsmap = bytes(json["tokenizer"]["normalizer"]["precompiled_charsmap"].as_str().unwrap_or_default());
    (gguf, parse(&json["tokenizer"].to_string()).unwrap())
}

fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut detokenizer = tokenizer.detokenizer();
    let text: String = ids.iter().map(|&id| detokenizer.push(id).unwrap()).collect();
    text + &detokenizer.finish().unwrap()
}

/// Compares ids, texts of ids, and whether texts come back; gives how many of them did.
fn compare(gguf: &GgufTokenizer, published: &Tokenizer) -> usize {
    let tokenizer = Tokenizer::from_gguf(gguf).unwrap();
    let added: Vec<String> = gguf.added().into_iter().map(|token| token.content).collect();
    let tokens = gguf.tokens.iter().cloned().step_by(7);
    let spelled = added.iter().cloned().cycle().take(200).chain(tokens).collect();
    let mut same = 0;
    for text in Odd::new(5, spelled).strings(STRINGS) {
        let ids = published.encode(&text).unwrap();
        assert_eq!(tokenizer.encode(&text).unwrap(), ids, "{text:?}");
        let rendered = published.encode_rendered(&text).unwrap();
        assert_eq!(tokenizer.encode_rendered(&text).unwrap(), rendered, "{text:?}");
        let back = streamed(&tokenizer, &ids);
        assert_eq!(back, streamed(published, &ids), "{text:?}");
        same += usize::from(back == text);
        // Where no token is left out and nothing normalized, every text comes back.
        let special = |id: &u32| tokenizer.inner().get_added_vocabulary().is_special_token(&gguf.tokens[*id as usize]);
        if gguf.model == "gpt2" && tokenizer.inner().get_normalizer().is_none() && !rendered.iter().any(special) && !text.contains("été")
        {
            assert_eq!(streamed(&tokenizer, &rendered), text);
        }
    }
    let live = tokenizer.texts().unwrap();
    assert_eq!(live, published.texts().unwrap());
    same
}

fn compare_reference(name: &str) {
    let (gguf, published) = both(name);
    compare(&gguf, &published);
}

macro_rules! equal {
    ($($test:ident: $($name:literal),*;)*) => {
        $(#[test]
        fn $test() {
            for name in [$($name),*] {
                compare_reference(name);
            }
        })*

        const COMPARED: &[&str] = &[$($($name),*),*];
    };
}

equal! {
    words_of_the_first_vocabulary: "gpt-2", "olmo", "falcon";
    words_with_single_digits: "starcoder", "command-r";
    single_digits: "qwen2", "qwen35";
    triple_digits: "dbrx", "glm4", "llama-bpe";
    cased_words: "gpt-4o", "tekken", "kimi-k2";
    three_cuts: "deepseek-v3";
    six_cuts: "deepseek-llm", "deepseek-coder";
    merges_by_score: "pieces-prefix", "pieces-plain", "pieces-unknown";
    unigram: "unigram-tidy", "unigram-spaces";
}

#[test]
fn the_demo_has_the_ids_of_its_file() {
    let gguf = metadata(&reference("demo")["gguf"]);
    let same = compare(&gguf, &demo());
    assert!(same > STRINGS * 8 / 10, "{same}");
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    for case in demo_cases() {
        assert_eq!(tokenizer.encode(&case.prompt).unwrap(), case.prompt_ids);
        assert_eq!(streamed(&tokenizer, &case.tokens), case.text);
    }
}

/// Every name stands for a cut that is compared, but the one that nobody publishes.
#[test]
fn every_name_works() {
    let json = &reference("gpt-2")["gguf"];
    for name in Family::all() {
        let gguf = GgufTokenizer { pre: Some(name.into()), ..metadata(json) };
        let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
        let ids = tokenizer.encode_rendered("It's 12345 o'clock,\n  isn't it?").unwrap();
        assert_eq!(streamed(&tokenizer, &ids), "It's 12345 o'clock,\n  isn't it?");
        let family = Family::named(Some(name)).unwrap();
        let compared = Family::all().filter(|other| std::ptr::eq(Family::named(Some(other)).unwrap(), family));
        let is_compared = compared.into_iter().any(|other| COMPARED.contains(&other));
        assert_eq!(is_compared, name != "default", "{name}");
    }
}

/// The strings tell every two cuts apart, and composed text from text as it is.
#[test]
fn another_name_has_other_ids() {
    let alike = [["glm4", "dbrx"], ["glm4", "llama-bpe"], ["dbrx", "llama-bpe"]];
    let json = &reference("gpt-2")["gguf"];
    let of = |name: &&str| Tokenizer::from_gguf(&GgufTokenizer { pre: Some((*name).into()), ..metadata(json) }).unwrap();
    let names: Vec<&str> = COMPARED.iter().copied().filter(|name| Family::named(Some(name)).is_ok()).collect();
    let strings: Vec<String> = Odd::new(5, Vec::new()).strings(STRINGS).collect();
    let ids: Vec<Vec<Vec<u32>>> =
        (names.iter().map(of)).map(|tokenizer| strings.iter().map(|text| tokenizer.encode_rendered(text).unwrap()).collect()).collect();
    for (one, name) in names.iter().enumerate() {
        for (other, other_name) in names.iter().enumerate().skip(one + 1) {
            let expected = alike.iter().any(|pair| pair.contains(name) && pair.contains(other_name));
            assert!(expected || ids[one] != ids[other], "{name} and {other_name}");
        }
    }
}

fn tiny() -> GgufTokenizer {
    GgufTokenizer {
        model: "gpt2".into(),
        pre: Some("gpt-2".into()),
        tokens: ["a", "b", "ab", "<s>", "</s>", "[PAD5]"].map(str::to_owned).to_vec(),
        token_types: vec![1, 1, 1, 3, 3, 5],
        merges: vec!["a b".into()],
        bos: Some(3),
        eos: Some(4),
        ..GgufTokenizer::default()
    }
}

#[test]
fn ends_are_added_as_the_file_says() {
    let ids = |add_bos: Option<bool>, add_eos: Option<bool>, pre: &str| {
        let gguf = GgufTokenizer { add_bos, add_eos, pre: Some(pre.into()), ..tiny() };
        Tokenizer::from_gguf(&gguf).unwrap().encode("ab").unwrap()
    };
    assert_eq!(ids(None, None, "gpt-2"), [2]);
    assert_eq!(ids(None, None, "llama-bpe"), [3, 2]);
    assert_eq!(ids(Some(false), None, "llama-bpe"), [2]);
    assert_eq!(ids(Some(true), Some(true), "gpt-2"), [3, 2, 4]);
    assert_eq!(ids(Some(false), Some(true), "gpt-2"), [2, 4]);
    let tokenizer = Tokenizer::from_gguf(&GgufTokenizer { add_bos: Some(true), ..tiny() }).unwrap();
    assert_eq!(tokenizer.encode("").unwrap(), [3]);
    assert_eq!(tokenizer.encode_rendered("<s>a[PAD5]").unwrap(), [3, 0]);
}

#[test]
fn what_contradicts_itself_is_refused() {
    type Change = fn(&mut GgufTokenizer);
    let cases: &[(Change, &str)] = &[
        (|gguf| gguf.model = "bert".into(), "tokenizer.ggml.model is `bert`; coli knows gpt2, llama, t5"),
        (|gguf| gguf.pre = Some("viking".into()), "tokenizer.ggml.pre is `viking`; coli knows gpt-2, "),
        (|gguf| gguf.pre = None, "tokenizer.ggml.pre is missing; coli knows gpt-2, "),
        (|gguf| gguf.tokens.clear(), "tokenizer.ggml.tokens: 0 tokens"),
        (|gguf| gguf.scores = vec![0.0; 5], "tokenizer.ggml.scores: 5 values for 6 tokens"),
        (|gguf| gguf.scores = vec![f32::NAN; 6], "tokenizer.ggml.scores: NaN for token 0"),
        (|gguf| gguf.token_types.push(1), "tokenizer.ggml.token_type: 7 values for 6 tokens"),
        (|gguf| gguf.token_types[1] = 7, "tokenizer.ggml.token_type: 7 for token 1"),
        (|gguf| gguf.eos = Some(6), "tokenizer.ggml.eos_token_id: 6, but there are 6 tokens"),
        (|gguf| gguf.eot = Some(u32::MAX), "tokenizer.ggml.eot_token_id: 4294967295"),
        (|gguf| gguf.tokens[1] = "a".into(), "token 1, `a`, is there twice"),
        (|gguf| gguf.tokens[1] = "b".repeat(5000), "token 1 has 5000 bytes"),
        (|gguf| gguf.merges.clear(), "tokenizer.ggml.merges is missing or empty"),
        (|gguf| gguf.merges[0] = "ab".into(), "merge 0, `ab`, is no pair"),
        (|gguf| gguf.merges[0] = "a b c".into(), "merge 0, `a b c`, is no pair"),
        (|gguf| gguf.merges[0] = "b a".into(), "merge 0, `b a`, is no pair"),
        (|gguf| (gguf.add_bos, gguf.bos) = (Some(true), None), "tokenizer.ggml.add_bos_token: there is no bos_token_id"),
        (|gguf| gguf.model = "llama".into(), "tokenizer.ggml.scores is missing"),
        (|gguf| (gguf.model, gguf.scores, gguf.unk) = ("t5".into(), vec![0.0; 6], Some(5)), "tokenizer.ggml.unknown_token_id is missing"),
        (
            |gguf| (gguf.model, gguf.scores, gguf.charsmap) = ("t5".into(), vec![0.0; 6], vec![0xfc, 0xff, 0xff, 0xff, 0, 0]),
            "tokenizer.ggml.precompiled_charsmap is cut off",
        ),
    ];
    for (change, expected) in cases {
        let mut gguf = tiny();
        change(&mut gguf);
        let error = Tokenizer::from_gguf(&gguf).unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
        assert!(error.text.contains(expected) && !error.text.contains('\n'), "{error} / {expected}");
    }
}

/// A map that points outside itself is found when it is used.
#[test]
fn a_lying_map_is_an_error_of_the_text() {
    let mut gguf = GgufTokenizer { model: "t5".into(), scores: vec![-1.0; 6], unk: Some(0), eos: Some(4), ..tiny() };
    gguf.charsmap = [4u32.to_le_bytes(), u32::MAX.to_le_bytes()].concat();
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    assert_eq!(tokenizer.encode("ab").unwrap_err().kind, Kind::Refused);
}

#[test]
fn template_and_stop_ids_come_from_the_file() {
    let template = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token }}";
    let mut gguf = GgufTokenizer { chat_template: Some(template.into()), ..tiny() };
    let messages = [Message { role: "user", content: "hi".into() }];
    assert_eq!(ChatTemplate::from_gguf(&gguf).unwrap().render(&messages, UNIX_EPOCH).unwrap(), "<s>hi</s>");
    (gguf.bos, gguf.chat_template) = (None, Some("[{{ bos_token }}]{{ nope() }}".into()));
    let error = ChatTemplate::from_gguf(&gguf).unwrap().render(&messages, UNIX_EPOCH).unwrap_err();
    assert!(error.text.starts_with("tokenizer.chat_template: line 1:"), "{error}");
    gguf.chat_template = None;
    assert!(ChatTemplate::from_gguf(&gguf).unwrap_err().text.contains("no chat template"));
    assert_eq!(StopIds::from_gguf(&gguf).ids(), [4]);
    (gguf.eot, gguf.eom) = (Some(4), Some(2));
    assert_eq!(StopIds::from_gguf(&gguf).ids(), [2, 4]);
    assert!(StopIds::from_gguf(&GgufTokenizer { eos: None, ..tiny() }).ids().is_empty());
    assert_eq!(StopIds::from_gguf(&GgufTokenizer { model: "llama".into(), eos: None, ..tiny() }).ids(), [2]);
}
