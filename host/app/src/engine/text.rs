//! Tokenizer, chat template and the ids that end a text, from where the model has them: files of its folder, or a GGUF file's metadata.

use coli_base::{Error, Result};
use coli_plugin_api::describe::Container;
use coli_store::Checkpoint;
use coli_text::{ChatTemplate, GgufTokenizer, StopIds, Tokenizer};
use serde_json::Value;

/// The model's tokenizer.
pub fn tokenizer(checkpoint: &Checkpoint) -> Result<Tokenizer> {
    match checkpoint.container() {
        Container::Hf => Tokenizer::open(checkpoint.dir()),
        Container::Gguf => in_file(checkpoint, Tokenizer::from_gguf),
    }
}

/// The model's chat template.
pub fn chat_template(checkpoint: &Checkpoint) -> Result<ChatTemplate> {
    match checkpoint.container() {
        Container::Hf => ChatTemplate::open(checkpoint.dir()),
        Container::Gguf => in_file(checkpoint, ChatTemplate::from_gguf),
    }
}

/// The ids that end a text.
pub fn stop_ids(checkpoint: &Checkpoint, generation: Option<&Value>) -> Result<StopIds> {
    match checkpoint.container() {
        Container::Hf => StopIds::from_json(generation, checkpoint.config()),
        Container::Gguf => in_file(checkpoint, |gguf| Ok(StopIds::from_gguf(gguf))),
    }
}

/// Something made of a file's metadata; an error names the file.
fn in_file<T>(checkpoint: &Checkpoint, make: impl FnOnce(&GgufTokenizer) -> Result<T>) -> Result<T> {
    let made = of_metadata(checkpoint).and_then(|gguf| make(&gguf));
    made.map_err(|error| error.within(format_args!("`{}`", checkpoint.path().display())))
}

/// What a GGUF file says of its tokenizer.
fn of_metadata(checkpoint: &Checkpoint) -> Result<GgufTokenizer> {
    let value = |key: &str| checkpoint.metadata(&format!("tokenizer.{key}"));
    let text = |key: &str| value(key).and_then(|value| value.as_text()).map(String::from);
    let id = |key: &str| value(&format!("ggml.{key}_token_id")).and_then(|value| value.as_u64()).and_then(|id| u32::try_from(id).ok());
    let flag = |key: &str| value(&format!("ggml.{key}")).and_then(|value| value.as_bool());
    let texts = |key: &str| value(&format!("ggml.{key}")).and_then(|value| value.as_texts()).unwrap_or_default().to_vec();
    let types = value("ggml.token_type").and_then(|value| value.as_signed()).unwrap_or_default();
    let model = text("ggml.model").ok_or_else(|| Error::refused("its metadata has no `tokenizer.ggml.model`, so it has no tokenizer"))?;
    Ok(GgufTokenizer {
        model,
        pre: text("ggml.pre"),
        tokens: texts("tokens"),
        scores: value("ggml.scores").and_then(|value| value.as_f32s()).unwrap_or_default().to_vec(),
        // What does not fit is no known type.
        token_types: types.iter().map(|kind| i32::try_from(*kind).unwrap_or(-1)).collect(),
        merges: texts("merges"),
        bos: id("bos"),
        eos: id("eos"),
        eot: id("eot"),
        eom: id("eom"),
        unk: id("unknown"),
        pad: id("padding"),
        add_bos: flag("add_bos_token"),
        add_eos: flag("add_eos_token"),
        add_space_prefix: flag("add_space_prefix"),
        remove_extra_whitespaces: flag("remove_extra_whitespaces"),
        charsmap: value("ggml.precompiled_charsmap").and_then(|value| value.as_bytes()).unwrap_or_default(),
        chat_template: text("chat_template"),
    })
}
