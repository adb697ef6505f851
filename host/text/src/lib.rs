//! Text and token ids: [`Tokenizer`] turns text into ids, [`Detokenizer`] turns ids into text as they come, [`StopIds`] says which ids
//! end a text, [`StopTexts`] which texts do, and [`ChatTemplate`] makes a text of messages.

mod bytes;
mod calendar;
mod chat;
mod detokenizer;
mod gguf;
mod python_json;
mod stop;
mod stop_text;
#[cfg(test)]
mod testing;
mod tokenizer;
mod window;

pub use chat::{ChatTemplate, Message};
pub use detokenizer::Detokenizer;
pub use gguf::GgufTokenizer;
pub use stop::StopIds;
pub use stop_text::StopTexts;
pub use tokenizer::Tokenizer;
