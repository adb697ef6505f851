//! Sizes: module docs, files, functions, lines.

use super::Rule;
use crate::exceptions::{self, Figure};
use crate::items;
use crate::tree::{File, Tree};

const FUNCTION_LINES: usize = 70;
const WIDTH_CHARS: usize = 140;

pub(super) const MODULE_DOCS: Rule = Rule {
    name: "module_docs",
    advice: "begin every Rust file, tests too, with `//!` and what the module is for",
    check: |tree| {
        let bare = tree.rust().filter(|(file, _)| !file.text().starts_with("//! "));
        bare.map(|(file, _)| format!("{}:1: has no module doc in its first line", file.path)).collect()
    },
};

pub(super) const FILES: Rule = Rule {
    name: "file_budget",
    advice: "split the file by what its parts are for (sources 500 lines, tests and cases 1500, shaders 300); tests/tidy/exceptions.txt is \
             for debt that existed before, with its present size",
    check: |tree| {
        let figures = tree
            .files()
            .filter_map(|file| Some(Figure { key: file.path.clone(), size: file.text().lines().count(), budget: file_budget(file)? }));
        exceptions::hold(tree, "file", "lines", &figures.collect::<Vec<_>>())
    },
};

/// The lines that a file may have; none of what is not written by hand as code.
fn file_budget(file: &File) -> Option<usize> {
    match file.extension() {
        "comp" | "glsl" => Some(300),
        "rs" | "py" | "sh" if file.test || file.name() == "cases.rs" => Some(1500),
        "rs" | "py" | "sh" => Some(500),
        _ => None,
    }
}

pub(super) const FUNCTIONS: Rule = Rule {
    name: "function_budget",
    advice: "split the function: at most 70 lines",
    check: |tree| {
        let figures = tree.rust().flat_map(|(file, source)| {
            let figure = |function: items::Function| Figure {
                key: format!("{}#{}", file.path, function.name),
                size: function.lines,
                budget: FUNCTION_LINES,
            };
            items::functions(&source).into_iter().map(figure).collect::<Vec<_>>()
        });
        exceptions::hold(tree, "function", "lines", &figures.collect::<Vec<_>>())
    },
};

pub(super) const WIDTH: Rule = Rule {
    name: "line_width",
    advice: "break the line: at most 140 characters. Where rustfmt gives up on a statement, it is a string or a closure that wants a name",
    check: |tree| {
        let figures = tree.files().filter(|file| file_budget(file).is_some()).map(|file| {
            let wide = file.text().lines().filter(|line| line.chars().count() > WIDTH_CHARS).count();
            Figure { key: file.path.clone(), size: wide, budget: 0 }
        });
        let mut faults = exceptions::hold(tree, "width", "wide lines", &figures.collect::<Vec<_>>());
        faults.iter_mut().for_each(|fault| fault.push_str(&wide_lines(tree, fault)));
        faults
    },
};

/// The numbers of the wide lines of the file that a fault begins with.
fn wide_lines(tree: &Tree, fault: &str) -> String {
    let path = fault.split(": ").next().unwrap_or_default();
    let lines = tree.text(path).lines().enumerate().filter(|(_, line)| line.chars().count() > WIDTH_CHARS);
    let numbers: Vec<String> = lines.map(|(index, _)| (index + 1).to_string()).collect();
    if numbers.is_empty() { String::new() } else { format!("; they are {}", numbers.join(", ")) }
}

pub(super) const EXCEPTIONS: Rule = Rule {
    name: "exceptions",
    advice: "an entry of tests/tidy/exceptions.txt is `kind path number`; a function's path is `file#function`",
    check: exceptions::malformed,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rule: &Rule, path: &str, text: &str) -> Vec<String> {
        (rule.check)(&Tree::of(&[(path, text)]))
    }

    #[test]
    fn a_file_without_a_doc_in_its_first_line() {
        for text in ["", "use a;\n//! Late.\n", "// No doc.\n", "\n//! Late.\n", "//!\n"] {
            assert_eq!(verdict(&MODULE_DOCS, "host/a/src/a_tests.rs", text).len(), 1, "{text}");
        }
        assert!(verdict(&MODULE_DOCS, "a.rs", "//! Doc.\n").is_empty());
    }

    #[test]
    fn a_file_over_its_budget() {
        for (path, budget) in
            [("host/a/src/b.rs", 500), ("tests/a/src/b.rs", 1500), ("shaders/src/ops/a/cases.rs", 1500), ("x/a.comp", 300)]
        {
            assert!(verdict(&FILES, path, &"x\n".repeat(budget)).is_empty(), "{path}");
            assert_eq!(verdict(&FILES, path, &"x\n".repeat(budget + 1)).len(), 1, "{path}");
        }
        assert!(verdict(&FILES, "docs/a.md", &"x\n".repeat(5000)).is_empty());
    }

    #[test]
    fn a_function_over_its_budget() {
        let text = |lines: usize| format!("fn f() {{\n{}}}\nfn g() {{}}\n", "x;\n".repeat(lines - 2));
        assert!(verdict(&FUNCTIONS, "a.rs", &text(70)).is_empty());
        assert_eq!(verdict(&FUNCTIONS, "a.rs", &text(71)), ["a.rs#f: 71 lines, at most 70"]);
    }

    #[test]
    fn wide_lines_are_counted_in_characters_and_named() {
        let text = format!("{}\n{}\nx\n{}\n", "é".repeat(140), "é".repeat(141), "x".repeat(150));
        assert_eq!(verdict(&WIDTH, "a.rs", &text), ["a.rs: 2 wide lines, at most 0; they are 2, 4"]);
        let listed = Tree::of(&[("a.rs", text.as_str()), (exceptions::PATH, "width a.rs 2\n")]);
        assert!((WIDTH.check)(&listed).is_empty());
    }

    #[test]
    fn a_line_of_the_list_that_is_none() {
        assert_eq!(verdict(&EXCEPTIONS, exceptions::PATH, "lines a.rs 3\n").len(), 1);
    }
}
