//! The pages of `docs/generated/`: ops and formats with what their folders say of them, and the settings.

use coli_config::{Reader, SETTINGS};
use coli_shaders::formats::Format;
use coli_shaders::ops;

use crate::tree::Tree;

/// Where the pages are.
pub const FOLDER: &str = "docs/generated/";

const NOTE: &str = "<!-- Written by `cargo run --release -p coli-test-tidy`; do not edit. -->";

/// All pages: path and text.
pub fn pages(tree: &Tree) -> Vec<(String, String)> {
    let pages = [("ops.md", ops_page(tree)), ("formats.md", formats_page(tree)), ("settings.md", settings_page())];
    pages.map(|(name, text)| (format!("{FOLDER}{name}"), text)).into()
}

fn ops_page(tree: &Tree) -> String {
    let mut page =
        format!("{NOTE}\n\n# Ops\n\nWhat each op is, from its folder in `shaders/src/ops`, where operands and parameters stand as well.\n");
    for entry in ops::all() {
        let name = entry.id.split('@').next().unwrap_or_default();
        let doc = module_doc(tree.text(&format!("shaders/src/ops/{name}/mod.rs")));
        let cases = (entry.cases)().len();
        page.push_str(&format!("\n## `{}`\n\n{}\n\n", entry.id, summary(&doc)));
        if let Some(formula) = doc.get(1) {
            page.push_str(&format!("{formula}\n\n"));
        }
        page.push_str(&format!("{cases} {}.\n", if cases == 1 { "case" } else { "cases" }));
    }
    page
}

fn formats_page(tree: &Tree) -> String {
    let mut page = format!(
        "{NOTE}\n\n# Weight formats\n\nFrom `shaders/src/formats`.\n\n| format | bytes a row of 256 | what it is |\n|---|---|---|\n"
    );
    for format in Format::ALL {
        let name = format.name();
        let bytes = format.row_bytes(256).zip(format.scale_bytes(256)).map_or("-".into(), |(values, scales)| (values + scales).to_string());
        // Formats of one kind share a folder, which has the first word of their names.
        let whole = format!("shaders/src/formats/{}/mod.rs", name.replace('-', "_"));
        let kind = format!("shaders/src/formats/{}/mod.rs", name.split('-').next().unwrap_or(name));
        let doc = module_doc(tree.text(if tree.get(&whole).is_some() { &whole } else { &kind }));
        page.push_str(&format!("| `{name}` | {bytes} | {} |\n", cell(summary(&doc))));
    }
    page
}

fn settings_page() -> String {
    let mut page = format!("{NOTE}\n\n# Settings\n\nFrom `host/config`. An unknown variable that begins with `COLI_` is an error.\n\n");
    page.push_str("| key | environment | is | default | what it does |\n|---|---|---|---|---|\n");
    for setting in SETTINGS {
        let script = if setting.reader == Reader::Script { " Read by the script around the program." } else { "" };
        let (unit, default, doc) = (setting.unit.name(), cell(&setting.default_words()), cell(setting.doc));
        page.push_str(&format!("| `{}` | `{}` | {unit} | {default} | {doc}{script} |\n", setting.key, setting.env));
    }
    page
}

/// The paragraphs of a module's doc, as text for a page: a link to an item is its name there.
fn module_doc(source: &str) -> Vec<String> {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n");
    let text = text.replace("[`", "`").replace("`]", "`");
    text.split("\n\n").map(str::to_string).collect()
}

/// The first paragraph without the name that it begins with.
fn summary(doc: &[String]) -> &str {
    let first = doc.first().map_or("", String::as_str);
    if first.starts_with('`') { first.split_once(": ").map_or(first, |(_, rest)| rest) } else { first }
}

fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_is_taken_apart() {
        let doc = module_doc("//! `a@1`: does: that\n//! and this.\n//!\n//! `y = x` as in [`super::b`].\n\nuse c;\n//! Not this.\n");
        assert_eq!(doc, ["`a@1`: does: that\nand this.", "`y = x` as in `super::b`."]);
        assert_eq!(summary(&doc), "does: that\nand this.");
        assert_eq!((summary(&[]), cell("a\n|b").as_str()), ("", "a \\|b"));
    }

    #[test]
    fn pages_have_every_row() {
        let pages = pages(&Tree::of(&[]));
        let has = |page: usize, text: &str| assert!(pages[page].1.contains(text), "{}", pages[page].1);
        ops::all().iter().for_each(|entry| has(0, &format!("\n## `{}`\n", entry.id)));
        has(1, "| `bf16` | 512 |");
        SETTINGS.iter().for_each(|setting| has(2, &format!("| `{}` |", setting.env)));
    }
}
