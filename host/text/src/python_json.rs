//! JSON as Python's `json.dumps` writes it: spaces behind commas and colons, letters of any script as they are.

use std::io;

use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// The value as text; with `indent`, one item a line.
pub(crate) fn text(value: &Value, indent: Option<usize>) -> String {
    let mut bytes = Vec::new();
    // Neither writing to memory nor a value with texts as keys fails.
    let _ = match indent {
        None => serde::Serialize::serialize(value, &mut Serializer::with_formatter(&mut bytes, Spaced)),
        Some(width) => {
            let spaces = " ".repeat(width.min(64));
            serde::Serialize::serialize(value, &mut Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(spaces.as_bytes())))
        }
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::json;

    /// The texts are those of Python 3's `json.dumps(value, ensure_ascii=False, indent=...)`.
    #[test]
    fn texts_are_pythons() {
        let value = json!({"a": [1, 2.5, "é<'\"\n"], "b": {}, "c": [], "d": null, "e": true});
        assert_eq!(text(&value, None), r#"{"a": [1, 2.5, "é<'\"\n"], "b": {}, "c": [], "d": null, "e": true}"#);
        let indented =
            "{\n  \"a\": [\n    1,\n    2.5,\n    \"é<'\\\"\\n\"\n  ],\n  \"b\": {},\n  \"c\": [],\n  \"d\": null,\n  \"e\": true\n}";
        assert_eq!(text(&value, Some(2)), indented);
    }
}
