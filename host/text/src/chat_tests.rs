//! Texts of chat templates against those of the reference, where templates are found, and that hostile ones end.

use std::fs;
use std::time::Duration;

use coli_base::Kind;
use serde_json::json;

use super::*;

fn user(content: &str) -> Vec<Message> {
    vec![Message { role: "user", content: content.into() }]
}

fn template(source: &str, tokens: Vec<(String, String)>) -> ChatTemplate {
    ChatTemplate { source: source.into(), origin: "chat template".into(), tokens }
}

fn render(source: &str) -> Result<String> {
    template(source, Vec::new()).render(&user("hi"), UNIX_EPOCH)
}

/// Written by `tests/cli/chat/make_chat_cases.py`.
#[test]
fn texts_are_those_of_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cli/chat/chat_cases.json");
    let reference: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(reference["now"].as_u64().unwrap());
    let cases = reference["cases"].as_array().unwrap();
    assert!(cases.len() >= 20);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let template = template(case["template"].as_str().unwrap(), special_tokens(&reference["tokens"]));
        let role = |text: &str| *["system", "user"].iter().find(|role| **role == text).unwrap();
        let message =
            |turn: &Value| Message { role: role(turn["role"].as_str().unwrap()), content: turn["content"].as_str().unwrap().into() };
        let messages: Vec<Message> = case["messages"].as_array().unwrap().iter().map(message).collect();
        match (template.render(&messages, now), case["text"].as_str()) {
            (Ok(text), Some(expected)) => assert_eq!(text, expected, "{name}"),
            (Err(error), None) => assert!(error.text.contains(case["refusal"].as_str().unwrap()), "{name}: {error}"),
            (have, want) => panic!("{name}: {have:?}, the reference says {want:?}"),
        }
    }
}

#[test]
fn a_template_is_found_where_models_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text = || ChatTemplate::open(path).and_then(|template| template.render(&user("hi"), UNIX_EPOCH));
    let error = text().unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    assert!(error.text.contains("has no chat template") && error.text.contains("--chat"), "{error}");
    let config = |value: Value| fs::write(path.join(CONFIG_FILE), value.to_string()).unwrap();
    config(json!({"bos_token": {"content": "<B>", "lstrip": false}, "eos_token": "<E>"}));
    assert!(text().unwrap_err().text.contains("has no chat template"));
    config(json!({"bos_token": {"content": "<B>"}, "eos_token": "<E>", KEY: "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"}));
    assert_eq!(text().unwrap(), "<B>hi<E>");
    config(json!({KEY: [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]}));
    assert_eq!(text().unwrap(), "d");
    config(json!({KEY: [{"name": "tools", "template": "t"}]}));
    assert!(text().unwrap_err().text.contains("named `default`"));
    config(json!({KEY: 3, "bos_token": "<B>"}));
    assert!(text().unwrap_err().text.contains("not a number"));
    fs::write(path.join(TEMPLATE_FILE), "file {{ bos_token }}").unwrap();
    assert_eq!(text().unwrap(), "file <B>", "the file of its own counts more");
    fs::write(path.join(TEMPLATE_FILE), b"ab\xff").unwrap();
    assert!(text().unwrap_err().text.contains("not UTF-8 at byte 2"));
}

#[test]
fn a_broken_template_is_one_line_with_its_place() {
    for (source, why) in [("a\n{% if %}", "line 2"), ("{{ messages[0].nothing.deeper }}", "undefined"), ("{{ nope() }}", "nope")] {
        let error = render(source).unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
        assert!(error.text.starts_with("chat template:") && error.text.contains(why) && !error.text.contains('\n'), "{error}");
    }
}

#[test]
fn a_hostile_template_ends() {
    let endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    let doubling = "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
    let large = "{{ 'x' * 99999999999 }}";
    let output = "{% for a in range(99999) %}{{ 'x' * 99999 }}{% endfor %}";
    let recursion = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    for source in [endless, doubling, large, output, recursion] {
        assert_eq!(render(source).unwrap_err().kind, Kind::Refused, "{source}");
    }
    assert!(render(endless).unwrap_err().text.contains("does not end within its bounds"));
    assert!(render(&"{% if true %}".repeat(100_000)).is_err(), "deeply nested source");
    assert!(render("{% include '/etc/passwd' %}").is_err());
}

#[test]
fn marks_for_training_print_nothing() {
    assert_eq!(render("a {%- generation -%} b {%- endgeneration %}c").unwrap(), "abc");
    assert_eq!(render("{{ '{% raw' }} {% if true %}x{% endif %}{%").map_err(|_| ()), Err(()));
}
