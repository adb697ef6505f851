//! The unsafe fence: which files may have unsafe code, and that each piece says why it holds.

use super::Rule;
use crate::source::{Comment, Source};

/// Files with unsafe code, and folders of them. A further one needs a decision record.
const FENCED: &[&str] = &[
    "plugin-api/src/abi.rs",
    "plugin-api/src/boundary.rs",
    "host/plugins/src/load.rs",
    "host/base/src/crew.rs",
    "host/vk/",
    "shaders/src/sums.rs",
    "shaders/src/fast/",
];

/// What a format's own kernels are in.
const KERNELS: (&str, &str) = ("shaders/src/formats/", "/fast.rs");

fn is_fenced(path: &str) -> bool {
    let is_in = |fenced: &&str| path == *fenced || fenced.ends_with('/') && path.starts_with(*fenced);
    FENCED.iter().any(is_in) || path.starts_with(KERNELS.0) && path.ends_with(KERNELS.1)
}

/// Files that only allow the unsafe code that a derive macro writes.
const DERIVED: &[&str] = &["host/plugins/src/load_tests.rs"];

pub(super) const FENCE: Rule = Rule {
    name: "unsafe_fence",
    advice: "write it without unsafe code, or move it into a file that may have it; a further file needs a decision record and its line in \
             tests/tidy/src/rules/fence.rs and CONTRIBUTING.md",
    check: |tree| {
        let mut found = Vec::new();
        for (file, source) in tree.rust().filter(|(file, _)| !is_fenced(&file.path)) {
            let words: &[&str] = if DERIVED.contains(&file.path.as_str()) { &["unsafe"] } else { &["unsafe", "unsafe_code"] };
            let tokens = source.tokens.iter().filter(|token| words.contains(&token.text));
            found.extend(tokens.map(|token| format!("{}:{}: `{}`", file.path, token.line, token.text)));
        }
        found
    },
};

pub(super) const SAFETY: Rule = Rule {
    name: "safety_comments",
    advice: "say why it holds, right above: `// SAFETY: ...` above a block or impl, a `# Safety` section in the doc of a function",
    check: |tree| {
        let mut found = Vec::new();
        for (file, source) in tree.rust() {
            let bare = source.find(&["unsafe"]).filter(|&at| !is_explained(&source, at));
            found.extend(bare.map(|at| format!("{}:{}: `unsafe {}`", file.path, source.tokens[at].line, source.text(at + 1))));
        }
        found
    },
};

/// Whether a comment about safety stands right above the statement or item with the `unsafe` at `at`.
fn is_explained(source: &Source<'_>, at: usize) -> bool {
    let mut start = at;
    // Back to the beginning of the statement or item, over attributes as well.
    while start > 0 && ![";", "{", "}"].contains(&source.text(start - 1)) {
        start -= 1;
    }
    let from = start.checked_sub(1).map_or(0, |before| source.tokens[before].end_line);
    let between = |comment: &&Comment<'_>| comment.end_line > from && comment.line <= source.tokens[at].line;
    let mut comments = source.comments.iter().filter(between);
    comments.any(|comment| comment.text.contains("SAFETY:") || comment.text.contains("# Safety"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn count(rule: &Rule, path: &str, text: &str) -> usize {
        (rule.check)(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn unsafe_code_outside_the_fence() {
        let bad = [
            "fn a() { unsafe { b() } }",
            "unsafe fn a() {}",
            "unsafe impl Send for A {}",
            "#![allow(unsafe_code)]",
            "#[unsafe(no_mangle)]",
        ];
        for text in bad {
            assert_eq!(count(&FENCE, "host/store/src/a.rs", text), 1, "{text}");
            assert_eq!(count(&FENCE, "tests/a/src/a.rs", text), 1, "{text}");
            for fenced in [FENCED[0], "shaders/src/fast/gemv/a.rs", "shaders/src/formats/q8_0/fast.rs"] {
                assert_eq!(count(&FENCE, fenced, text), 0, "{text}");
            }
            assert_eq!(count(&FENCE, "shaders/src/formats/q8_0/mod.rs", text), 1, "{text}");
            assert_eq!(count(&FENCE, DERIVED[0], text), usize::from(text != "#![allow(unsafe_code)]"), "{text}");
        }
        assert_eq!(count(&FENCE, "host/store/src/a.rs", "// unsafe\nlet a = \"unsafe {\"; #![deny(unsafe_op_in_unsafe_fn)]"), 0);
    }

    #[test]
    fn unsafe_code_without_a_reason() {
        let bad = [
            "fn a() { unsafe { b() } }",
            "// SAFETY: for b.\nlet b = unsafe { b() };\nlet c = unsafe { c() };",
            "// SAFETY: for a.\nfn a() {\n let b = 3;\n unsafe { c() } }",
            "/// Doc.\npub unsafe fn a() {}",
            "unsafe impl Send for A {}\n// SAFETY: late.",
        ];
        for text in bad {
            assert_eq!(count(&SAFETY, FENCED[0], text), 1, "{text}");
        }
        let good = [
            "a;\n// SAFETY: so.\nlet b =\n  unsafe { b() };",
            "fn a() {\n // SAFETY: so,\n // and so.\n unsafe { b() } }",
            "/// Doc.\n///\n/// # Safety\n/// So.\n#[inline]\npub unsafe fn a() {}",
            "// SAFETY: so.\nunsafe impl Send for A {}",
            "let a = f(\n  // SAFETY: so.\n  unsafe { b() },\n);",
        ];
        for text in good {
            assert_eq!(count(&SAFETY, FENCED[0], text), 0, "{text}");
        }
    }
}
