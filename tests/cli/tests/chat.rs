//! `coli run --chat`: the model's own template. What templates make of messages is tested in `host/text`, against `chat/`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use coli_test_cli::{Run, copy_demo, demo_case, edit, fresh, says};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A model with this template and these special tokens.
fn model(template: &str) -> TempDir {
    let folder = fresh();
    copy_demo(folder.path());
    let special = json!({"chat_template": template, "bos_token": null, "eos_token": {"content": "END"}});
    fs::write(folder.path().join("tokenizer_config.json"), special.to_string()).unwrap();
    folder
}

fn prompt_tokens(model: &Path, args: &[&str]) -> Value {
    let run = Run::coli(["run", "--json", "--temp", "0", "-n", "4", "--model"]).arg(model).args(args);
    run.finish().json()["prompt_tokens"].clone()
}

#[test]
fn the_rendered_text_is_what_runs() {
    let model =
        model("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}");
    let chat = |args: &[&str]| prompt_tokens(model.path(), &[&["--chat"], args].concat());
    assert_eq!(chat(&["Who was Emma?"]), prompt_tokens(model.path(), &["[user] Who was Emma?\n[assistant]"]));
    let told = chat(&["Who was Emma?", "--system", "Be brief."]);
    assert_eq!(told, prompt_tokens(model.path(), &["[system] Be brief.\n[user] Who was Emma?\n[assistant]"]));
    assert_ne!(prompt_tokens(model.path(), &["Who was Emma?"]), chat(&["Who was Emma?"]), "without --chat there is no template");
}

#[test]
fn special_tokens_of_a_template_are_tokens_and_are_not_added_once_more() {
    let model = model("");
    let path = model.path().join("tokenizer.json");
    // A tokenizer that puts the token in front of every text.
    edit(&path, |tokenizer| {
        let token = &tokenizer["added_tokens"][0];
        let (id, content) = (token["id"].clone(), token["content"].as_str().unwrap().to_string());
        tokenizer["post_processor"] = json!({
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": content, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {&content: {"id": content, "ids": [id], "tokens": [content]}}
        });
        let template = "{{ bos_token }}{{ messages[-1]['content'] }}";
        let config = json!({"chat_template": template, "bos_token": content});
        fs::write(model.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    });
    let plain = prompt_tokens(model.path(), &["Elizabeth"]);
    assert_eq!(plain.as_array().unwrap().len(), demo_case(0).prompt_ids.len() + 1);
    assert_eq!(prompt_tokens(model.path(), &["--chat", "Elizabeth"]), plain, "once, by the template");
}

#[test]
fn a_template_in_a_file_of_its_own_counts_more() {
    let model = model("config {{ messages[0].content }}");
    fs::write(model.path().join("chat_template.jinja"), "file {{ messages[0].content }}").unwrap();
    assert_eq!(prompt_tokens(model.path(), &["--chat", "x"]), prompt_tokens(model.path(), &["file x"]));
}

#[test]
fn a_model_without_a_template_is_refused() {
    says(&Run::coli(["run", "x", "--chat"]).finish().failed(3), &["has no chat template", "chat_template.jinja", "--chat"]);
}

#[test]
fn what_a_template_refuses_and_what_is_wrong_with_it_is_one_line() {
    for (template, parts) in [
        ("a\n{{ raise_exception('No\nsystem turn here') }}", &["No system turn here"][..]),
        ("a\n{% if %}", &["chat_template", "line 2"]),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", &["does not end within its bounds"]),
        ("{{ strftime_now('%Q') }}", &["strftime_now"]),
    ] {
        let model = model(template);
        says(
            &Run::coli(["run", "x", "--chat", "--model"]).arg(model.path()).finish().failed(3),
            &[&["tokenizer_config.json"], parts].concat(),
        );
    }
}

#[test]
fn system_needs_chat() {
    says(&Run::coli(["run", "x", "--system", "y"]).finish().failed(2), &["--chat"]);
}
