//! Text and token ids: [`Tokenizer`] turns text into ids, [`Detokenizer`] turns ids into text as they come, [`StopIds`] says which ids
//! end a text.

mod bytes;
mod detokenizer;
mod stop;
#[cfg(test)]
mod testing;
mod tokenizer;
mod window;

pub use detokenizer::Detokenizer;
pub use stop::StopIds;
pub use tokenizer::Tokenizer;
