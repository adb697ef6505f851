//! The generated pages are those that the generator writes now.

use super::Rule;
use crate::generate;

pub(super) const GENERATED: Rule = Rule {
    name: "generated_docs",
    advice: "run `cargo run --release -p coli-test-tidy`, which writes docs/generated/, and commit the result",
    check: |tree| {
        let pages = generate::pages(tree);
        let mut found = Vec::new();
        for (path, text) in &pages {
            match tree.get(path) {
                None => found.push(format!("{path}: is missing")),
                Some(file) if file.text() != text => found.push(format!("{path}: is not up to date")),
                Some(_) => {}
            }
        }
        let stray =
            tree.files().filter(|file| file.path.starts_with(generate::FOLDER) && !pages.iter().any(|(path, _)| *path == file.path));
        found.extend(stray.map(|file| format!("{}: is no page that the generator writes: remove it", file.path)));
        found
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn missing_stale_and_stray_pages() {
        let expected = [
            "ops.md: is missing",
            "formats.md: is not up to date",
            "settings.md: is missing",
            "x.md: is no page that the generator writes: remove it",
        ];
        let tree = Tree::of(&[("docs/generated/formats.md", "# Formats\n"), ("docs/generated/x.md", "")]);
        assert_eq!((GENERATED.check)(&tree), expected.map(|breach| format!("docs/generated/{breach}")));
        let pages = generate::pages(&Tree::of(&[]));
        let pages: Vec<(&str, &str)> = pages.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!((GENERATED.check)(&Tree::of(&pages)), [""; 0]);
    }
}
