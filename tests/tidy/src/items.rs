//! Items of a Rust file: its functions, and the parts that only tests compile.

use std::ops::RangeInclusive;

use crate::source::{Kind, Source};

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// Lines from there to its closing brace.
    pub lines: usize,
}

/// The functions of a file, nested ones too.
pub fn functions(source: &Source<'_>) -> Vec<Function> {
    source.find(&["fn"]).filter_map(|index| function(source, index)).collect()
}

fn function(source: &Source<'_>, index: usize) -> Option<Function> {
    let name = source.tokens.get(index + 1).filter(|token| token.kind == Kind::Word)?;
    let end = item_end(source, index);
    let last = source.tokens[..end].last().filter(|token| token.text == "}")?;
    let line = source.tokens[index].line;
    Some(Function { name: name.text.into(), line, lines: last.line - line + 1 })
}

/// Behind the item that begins at `index`: at its `;`, or at the end of its braces. A brace within other brackets does not begin a body.
pub fn item_end(source: &Source<'_>, index: usize) -> usize {
    let mut at = index;
    while at < source.tokens.len() {
        match source.text(at) {
            ";" | "{" => return source.behind_bracket(at),
            "}" => return at,
            "(" | "[" => at = source.behind_bracket(at),
            _ => at += 1,
        }
    }
    at
}

/// The lines that only tests compile: items under `#[cfg(test)]`, or all of them.
pub fn test_lines(source: &Source<'_>) -> Vec<RangeInclusive<usize>> {
    let whole = source.find(&["#", "!", "[", "cfg"]).any(|index| asks_for_test(source, index + 2));
    if whole {
        return vec![1..=usize::MAX];
    }
    test_items(source).into_iter().map(|index| lines_of_item(source, index)).collect()
}

/// The index of the `#` of each `#[cfg(test)]`.
fn test_items(source: &Source<'_>) -> Vec<usize> {
    source.find(&["#", "[", "cfg"]).filter(|&index| asks_for_test(source, index + 1)).collect()
}

/// Whether the attribute whose bracket is at `index` is a `cfg` that needs `test`.
fn asks_for_test(source: &Source<'_>, index: usize) -> bool {
    let inside = &source.tokens[index..source.behind_bracket(index)];
    inside.iter().any(|token| token.text == "test") && !inside.iter().any(|token| ["not", "any"].contains(&token.text))
}

/// The item under the attributes at `index`.
fn behind_attributes(source: &Source<'_>, mut index: usize) -> usize {
    while source.reads(index, &["#", "["]) {
        index = source.behind_bracket(index + 1);
    }
    index
}

fn lines_of_item(source: &Source<'_>, index: usize) -> RangeInclusive<usize> {
    let end = item_end(source, behind_attributes(source, index));
    let last = source.tokens[..end].last().map_or(1, |token| token.end_line);
    source.tokens[index].line..=last
}

/// A module in a file of its own that only tests compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestModule {
    /// Its name.
    pub name: String,
    /// The file that its `#[path]` states.
    pub path: Option<String>,
}

/// The modules in files of their own that only tests compile.
pub fn test_modules(source: &Source<'_>) -> Vec<TestModule> {
    test_items(source).into_iter().filter_map(|index| test_module(source, index)).collect()
}

fn test_module(source: &Source<'_>, index: usize) -> Option<TestModule> {
    let item = behind_attributes(source, index);
    let at = (item..item_end(source, item)).find(|&at| source.text(at) == "mod")?;
    if source.text(at + 2) != ";" {
        return None;
    }
    let path = (index..item).find(|&at| source.reads(at, &["path", "="])).map(|at| source.text(at + 2).trim_matches('"').to_string());
    Some(TestModule { name: source.text(at + 1).into(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<(String, usize, usize)> {
        functions(&Source::new(text)).into_iter().map(|function| (function.name, function.line, function.lines)).collect()
    }

    #[test]
    fn functions_are_measured_in_spite_of_braces_elsewhere() {
        let text = "fn a() {\n  let s = \"}\"; // }\n  /* } */ let c = '}';\n  let r = r#\"}\"#;\n}\nfn b() {}";
        assert_eq!(lengths(text), [("a".into(), 1, 5), ("b".into(), 6, 1)]);
        assert_eq!(lengths("fn a(x: [u8; { 3 }]) -> [u8; {\n 4 }]\n{\n}\n"), [("a".into(), 1, 4)]);
        assert_eq!(lengths("trait T { fn a(); fn b() {\n} }\ntype F = fn(u8) -> u8;"), [("b".into(), 1, 2)]);
        assert_eq!(lengths("fn a() {\n fn b() {\n }\n}\n// fn c() {\n"), [("a".into(), 1, 4), ("b".into(), 2, 2)]);
        assert_eq!(lengths("fn a<'x>(c: &'x str)\nwhere\n 'x: 'static, {\n match c { _ => {} }\n}"), [("a".into(), 1, 5)]);
        assert_eq!(lengths("macro_rules! m { ($n:ident) => { fn $n() {} }; }"), []);
    }

    #[test]
    fn test_code_is_what_cfg_test_covers() {
        let text = "a\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n b\n}\nc\n#[cfg(all(test, unix))]\nfn d(x: [u8; {1}])\n{}\n\
                    #[cfg(not(test))]\nfn e() {}\n";
        assert_eq!(test_lines(&Source::new(text)), [2..=6, 8..=10]);
        assert_eq!(test_lines(&Source::new("//! Doc\n#![cfg(test)]\nfn a() {}")), [1..=usize::MAX]);
        assert_eq!(test_lines(&Source::new("// #[cfg(test)]\nfn a() {}")), []);
        assert_eq!(test_lines(&Source::new("#[cfg(any(test, unix))]\nfn a() {}")), []);
    }

    #[test]
    fn test_modules_in_files_of_their_own() {
        let text =
            "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\n#[cfg(test)]\npub(crate) mod b;\n#[cfg(test)]\nmod c { mod d; }\nmod e;";
        let module = |name: &str, path: Option<&str>| TestModule { name: name.into(), path: path.map(Into::into) };
        assert_eq!(test_modules(&Source::new(text)), [module("tests", Some("a_tests.rs")), module("b", None)]);
    }
}
