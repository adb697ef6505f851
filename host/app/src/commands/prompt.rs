//! The prompt: an argument, a file, or standard input.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use coli_base::{Error, Result};

/// No context holds so much text; a source without an end should not fill the memory.
const BYTES_MAX: u64 = 64 << 20;

/// Reads the prompt. Exactly one source has one: the command line sees to that.
pub(super) fn read(argument: Option<&OsString>, file: Option<&Path>) -> Result<String> {
    let (source, text) = match (argument, file) {
        (Some(argument), _) if argument != "-" => {
            let source = "the prompt".to_string();
            let text = text(argument.as_encoded_bytes().to_vec(), &source)?;
            (source, text)
        }
        (None, Some(path)) => {
            let source = format!("the prompt file `{}`", path.display());
            let opened = std::fs::File::open(path).map_err(|error| Error::usage(format!("{source}: {error}")))?;
            let text = text(all(opened, &source)?, &source)?;
            (source, without_line_end(text))
        }
        (None, None) if io::stdin().is_terminal() => {
            return Err(Error::usage("there is no prompt; give one: coli run \"Emma was\", or -f FILE, or `-` to type it here"));
        }
        _ => {
            let source = "the prompt from standard input".to_string();
            let text = text(all(io::stdin().lock(), &source)?, &source)?;
            (source, without_line_end(text))
        }
    };
    if text.is_empty() {
        return Err(Error::usage(format!("{source} is empty; give one: coli run \"Emma was\"")));
    }
    Ok(text)
}

fn all(from: impl Read, source: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| Error::usage(format!("{source}: {error}")))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Error::usage(format!("{source} has more than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>, source: &str) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::usage(format!("{source} is not UTF-8 text: the byte at offset {at} begins no character"))
    })
}

/// A file's last line break belongs to the file, not to the text: a model would take it for the end of a paragraph.
fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_dropped_and_nothing_else() {
        for (text, expected) in [("a", "a"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a \r", "a \r"), ("\n", ""), ("", "")] {
            assert_eq!(without_line_end(text.into()), expected);
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_place() {
        for (bytes, at) in [(&b"\xff"[..], 0), (b"abc\xe6\xbc", 3), ("é\u{0}".as_bytes(), 9)] {
            match text(bytes.to_vec(), "it") {
                Err(error) => assert!(error.text.contains(&format!("it is not UTF-8 text: the byte at offset {at} ")), "{error}"),
                Ok(text) => assert_eq!(text, "é\0"),
            }
        }
    }

    #[test]
    fn a_source_without_an_end_is_refused() {
        let error = all(io::repeat(b'a'), "it").unwrap_err();
        assert!(error.text.contains("more than"), "{error}");
    }
}
