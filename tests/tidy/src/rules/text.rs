//! What no file has: paths of one machine, registry hosts, marks of unfinished work, loose ends; and how large files may be.
//!
//! The words are put together from parts, so that this file does not have them either.

use super::Rule;
use crate::tree::File;

/// Folders of the machines that this was written on, and hosts that packages come from.
const MACHINE_WORDS: &[&[&str]] = &[
    &["/wo", "rk/"],
    &["/ro", "ot/"],
    &["/ho", "me/"],
    &["/Us", "ers/"],
    &["crates", ".io"],
    &["pypi", ".org"],
    &["python", "hosted.org"],
    &["npm", "js.org"],
    &["npm", "js.com"],
    &["ruby", "gems.org"],
    &["proxy.go", "lang.org"],
    &["arti", "factory"],
];

pub(super) const MACHINE: Rule = Rule {
    name: "machine_paths",
    advice: "no path of the machine that it was written on, and no host of a package registry: name the folder from the root of the source \
             tree, or the tool that fetches",
    check: |tree| {
        let words: Vec<String> = MACHINE_WORDS.iter().map(|parts| parts.concat()).collect();
        let files = tree.files().filter(|file| file.name() != "Cargo.lock");
        files.flat_map(|file| lines(file, |line| words.iter().find(|word| has_path(line, word)).cloned())).collect()
    },
};

/// Whether the line has the word, a folder only where a path begins.
fn has_path(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !word.starts_with('/') || !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-*>)}".contains(c)))
}

/// Marks of work that is not done.
const UNFINISHED: &[&[&str]] = &[&["TO", "DO"], &["FIX", "ME"], &["XX", "X"], &["to", "do!("], &["unimpl", "emented!("]];

pub(super) const MARKERS: Rule = Rule {
    name: "markers",
    advice: "finish it, refuse it by name, or file an issue: no marks of unfinished work in the tree",
    check: |tree| {
        let words: Vec<String> = UNFINISHED.iter().map(|parts| parts.concat()).collect();
        let files = tree.files().filter(|file| !file.is_data() && file.name() != "Cargo.lock");
        files.flat_map(|file| lines(file, |line| words.iter().find(|word| has_word(line, word)).cloned())).collect()
    },
};

/// Whether the line has the word by itself.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let behind = line[at + word.len()..].starts_with(joins) && !word.ends_with('(');
        !line[..at].ends_with(joins) && !behind
    })
}

pub(super) const SPACE: Rule = Rule {
    name: "whitespace",
    advice: "no spaces at the end of a line, no carriage returns, and one newline at the end of a file",
    check: |tree| tree.files().filter(|file| file.text.is_some() && !file.is_data()).flat_map(space).collect(),
};

fn space(file: &File) -> Vec<String> {
    let mut found = lines(file, |line| (line.trim_end() != line).then(|| "space at its end".into()));
    if !file.text().is_empty() && !file.text().ends_with('\n') {
        found.push(format!("{}: does not end with a newline", file.path));
    }
    if file.text().ends_with("\n\n") {
        found.push(format!("{}: ends with an empty line", file.path));
    }
    found
}

/// Each line in which `find` finds something.
fn lines(file: &File, find: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let lines = file.text().split('\n').enumerate();
    lines.filter_map(|(index, line)| Some(format!("{}:{}: {}", file.path, index + 1, find(line)?))).collect()
}

const FILE_BYTES: u64 = 30_000_000;
const TREE_BYTES: u64 = 40_000_000;

pub(super) const SIZES: Rule = Rule {
    name: "sizes",
    advice: "no file over 30 MB, all together under 40 MB: make large data in the test that needs it",
    check: |tree| {
        let large = tree.files().filter(|file| file.bytes > FILE_BYTES);
        let mut found: Vec<String> = large.map(|file| format!("{}: {} bytes", file.path, file.bytes)).collect();
        let total: u64 = tree.files().map(|file| file.bytes).sum();
        if total >= TREE_BYTES {
            found.push(format!("all files together: {total} bytes"));
        }
        found
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn verdict(rule: &Rule, path: &str, text: &str) -> Vec<String> {
        (rule.check)(&Tree::of(&[(path, text)]))
    }

    #[test]
    fn every_word_of_a_machine() {
        for word in MACHINE_WORDS.iter().map(|parts| parts.concat()) {
            let text = format!("fine\nsee `{word}x`\n");
            assert_eq!(verdict(&MACHINE, "docs/a.md", &text), [format!("docs/a.md:2: {word}")]);
            assert_eq!(verdict(&MACHINE, "models/a/demo/config.json", &text).len(), 1);
            assert_eq!(verdict(&MACHINE, "Cargo.lock", &text), [""; 0]);
        }
        let folder = MACHINE_WORDS[0].concat();
        assert_eq!(verdict(&MACHINE, "a.md", &format!("team{folder}x $X{folder}\n")), [""; 0]);
    }

    #[test]
    fn every_mark_of_unfinished_work() {
        for word in UNFINISHED.iter().map(|parts| parts.concat()) {
            assert_eq!(verdict(&MARKERS, "a.rs", &format!("// {word} x\n")).len(), 1, "{word}");
            assert_eq!(verdict(&MARKERS, "a.rs", &format!("// A_{word} x\n")), [""; 0], "{word}");
            assert_eq!(verdict(&MARKERS, "models/a/demo/tokenizer.json", &format!("{word} x\n")), [""; 0], "{word}");
        }
        assert_eq!(verdict(&MARKERS, "a.rs", "todos, fixmes, method!(), todo()\n"), [""; 0]);
    }

    #[test]
    fn loose_ends() {
        let expected =
            ["a.md:1: space at its end", "a.md:2: space at its end", "a.md:3: space at its end", "a.md: does not end with a newline"];
        assert_eq!(verdict(&SPACE, "a.md", "a \nb\t\nc\r\nd"), expected);
        assert_eq!(verdict(&SPACE, "a.md", "a\n\n"), ["a.md: ends with an empty line"]);
        assert_eq!(verdict(&SPACE, "a.md", "a\n\nb\n"), [""; 0]);
        assert_eq!(verdict(&SPACE, "models/a/golden/b/config.json", "{} "), [""; 0]);
    }

    #[test]
    fn too_much() {
        let part = " ".repeat(21_000_000);
        let two = Tree::of(&[("a", &part), ("b", &part)]);
        assert_eq!((SIZES.check)(&two), ["all files together: 42000000 bytes"]);
        assert_eq!(verdict(&SIZES, "a", &" ".repeat(30_000_001)), ["a: 30000001 bytes"]);
        assert_eq!(verdict(&SIZES, "a", &part), [""; 0]);
    }
}
