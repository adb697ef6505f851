//! Who may touch the environment, certain crates, threads and the standard streams.

use super::Rule;
use crate::items;
use crate::source::{Kind, Source};
use crate::tree::{File, Tree};

/// What `std::env` has besides variables.
const ENV_WITHOUT_VARIABLES: &[&str] =
    &["args", "args_os", "consts", "current_dir", "current_exe", "join_paths", "split_paths", "temp_dir", "JoinPathsError", "SplitPaths"];

pub(super) const ENVIRONMENT: Rule = Rule {
    name: "environment",
    advice: "take the value from coli_config::Environment: only host/config reads the environment. A test gives a child its variables with \
             Command::env, and reads its own in tests/common/src/drivers.rs. Write `std::env::name` in full where it is not \
             about variables",
    check: |tree| {
        outside(tree, &["host/config/", KERNELS_BUILD, TEST_DEVICES], |_, source| {
            source.find(&["env"]).filter(|&at| reads_variables(source, at)).collect()
        })
    },
};

/// The build script that writes what its crate then embeds: cargo says in variables where that is.
const KERNELS_BUILD: &str = "host/kernels/build.rs";
/// Where tests tell their children, and people tests, on which device and what is to run.
const TEST_DEVICES: &str = "tests/common/src/drivers.rs";
const KERNELS: &str = "host/kernels/src/lib.rs";

/// Whether the `env` at `at` is the module, used for anything but what has nothing to do with variables.
fn reads_variables(source: &Source<'_>, at: usize) -> bool {
    if source.text(at + 1) == "::" {
        return !ENV_WITHOUT_VARIABLES.contains(&source.text(at + 2));
    }
    // `use std::env;`, `use std::{env, fs};`
    let from_std = at > 1 && source.reads(at - 2, &["std", "::"]);
    from_std || in_use_of_std(source, at)
}

fn in_use_of_std(source: &Source<'_>, at: usize) -> bool {
    let start = (0..at).rev().take_while(|&before| source.text(before) != ";").find(|&before| source.text(before) == "use");
    start.is_some_and(|start| {
        let first = if source.text(start + 1) == "::" { start + 2 } else { start + 1 };
        ["std", "{"].contains(&source.text(first)) && source.text(at + 1) != "!"
    })
}

pub(super) const BUILD_ENVIRONMENT: Rule = Rule {
    name: "build_environment",
    advice: "what the build leaves in a binary is host/config's business (`Baked`), and the kernels host/kernels'. Elsewhere `env!` reads \
             CARGO_PKG_VERSION, and in tests also CARGO_MANIFEST_DIR and CARGO_BIN_EXE_*: a path of the machine that built it does not \
             belong in the product",
    check: |tree| {
        outside(tree, &["host/config/"], |file, source| {
            let tests = items::test_lines(source);
            let used =
                (0..source.tokens.len()).filter(|&at| ["env", "option_env"].contains(&source.text(at)) && source.text(at + 1) == "!");
            let embeds = |at: usize| file.path == KERNELS && source.text(at + 3) == "\"OUT_DIR\"";
            used.filter(|&at| !embeds(at) && !is_allowed(source, at, file.test || is_within(&tests, source.tokens[at].line))).collect()
        })
    },
};

fn is_allowed(source: &Source<'_>, at: usize, test: bool) -> bool {
    let name = source.text(at + 3).trim_matches('"');
    let in_tests = name == "CARGO_MANIFEST_DIR" || name.starts_with("CARGO_BIN_EXE_");
    source.text(at) == "env" && (name == "CARGO_PKG_VERSION" || test && in_tests)
}

/// Paths in code, and the folders or files that may have them.
const FENCED: &[(&[&str], &[&str])] = &[
    (&["ash"], &["host/vk/"]),
    (&["shaderc"], &[KERNELS_BUILD]),
    (&["libloading"], &["host/plugins/"]),
    (&["abi_stable", "::", "library"], &["host/plugins/", "plugin-api/"]),
    (&["ctrlc"], &["host/app/src/stop.rs"]),
];

pub(super) const FENCED_CRATES: Rule = Rule {
    name: "fenced_crates",
    advice: "go through the crate that owns this: ash is host/vk's, libloading and abi_stable::library are host/plugins', ctrlc is that of \
             host/app/src/stop.rs, shaderc that of host/kernels/build.rs",
    check: |tree| {
        let mut found = Vec::new();
        for (path, places) in FENCED {
            found.extend(outside(tree, places, |_, source| source.find(path).filter(|&at| is_crate(source, at)).collect()));
        }
        found
    },
};

/// Whether the word at `at` begins a path, or is what a `use` takes.
fn is_crate(source: &Source<'_>, at: usize) -> bool {
    let used = at > 0
        && (["use", "crate"].contains(&source.text(at - 1)) || source.text(at - 1) == "::" && at > 1 && source.text(at - 2) == "use");
    source.tokens[at].kind == Kind::Word && (source.text(at + 1) == "::" || used)
}

/// Where product code may start threads.
const THREADED: &[&str] = &["host/app/src/patience.rs", "host/base/src/crew.rs"];

pub(super) const THREADS: Rule = Rule {
    name: "threads",
    advice: "threads that work are those of a crew (host/base/src/crew.rs). A place that starts others is a decision: it goes into the \
             list in tests/tidy/src/rules/access.rs and into docs/ARCHITECTURE.md, section 7",
    check: |tree| {
        outside(tree, THREADED, |file, source| {
            // A build script is a process of its own.
            if file.test || file.name() == "build.rs" {
                return Vec::new();
            }
            let tests = items::test_lines(source);
            let starts = (0..source.tokens.len()).filter(|&at| starts_threads(source, at));
            starts.filter(|&at| !is_within(&tests, source.tokens[at].line)).collect()
        })
    },
};

fn starts_threads(source: &Source<'_>, at: usize) -> bool {
    let spawns = source.text(at) == "thread"
        && source.text(at + 1) == "::"
        && !["sleep", "current", "yield_now", "available_parallelism"].contains(&source.text(at + 2));
    let imports = source.reads(at, &["std", "::", "thread"]) && source.text(at + 3) != "::"
        || source.text(at) == "thread" && in_use_of_std(source, at);
    let pool = source.text(at) == "rayon" && is_crate(source, at);
    spawns || imports || pool
}

pub(super) const PRINTING: Rule = Rule {
    name: "printing",
    advice: "return the text, or an error: only host/app and tests write to the standard streams",
    check: |tree| {
        outside(tree, &["host/app/"], |file, source| {
            // A build script talks to cargo on its standard output.
            if file.test || file.name() == "build.rs" {
                return Vec::new();
            }
            let tests = items::test_lines(source);
            let macros = ["print", "println", "eprint", "eprintln", "dbg"];
            let calls = source.find(&["!"]).filter(|&at| ["(", "[", "{"].contains(&source.text(at + 1))).filter_map(|at| at.checked_sub(1));
            calls.filter(|&at| macros.contains(&source.text(at))).filter(|&at| !is_within(&tests, source.tokens[at].line)).collect()
        })
    },
};

fn is_within(lines: &[std::ops::RangeInclusive<usize>], line: usize) -> bool {
    lines.iter().any(|range| range.contains(&line))
}

/// What `find` finds, as tokens, in the Rust files outside of these places.
fn outside(tree: &Tree, places: &[&str], find: impl Fn(&File, &Source<'_>) -> Vec<usize>) -> Vec<String> {
    let mut found = Vec::new();
    for (file, source) in tree.rust().filter(|(file, _)| !places.iter().any(|place| file.path.starts_with(place))) {
        for at in find(file, &source) {
            let end = (at + 4).min(source.tokens.len());
            let code: String = source.tokens[at..end].iter().map(|token| token.text).collect();
            found.push(format!("{}:{}: `{}`", file.path, source.tokens[at].line, code.lines().next().unwrap_or_default()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many breaches a file with this text has.
    fn count(rule: &Rule, path: &str, text: &str) -> usize {
        (rule.check)(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn variables_are_read_in_one_crate() {
        let bad = [
            "let a = std::env::var(\"A\");",
            "env::vars_os()",
            "unsafe { ::std::env::set_var(a, b) }",
            "std::env::remove_var(a);",
            "use std::env;",
            "use std::env as e;",
            "use std::{fs, env};",
            "use std::{io::{self, Read}, env, fs};",
            "use {std::env, std::fs};",
            "use std::env::*;",
            "use std::env::{args, var};",
            "#[cfg(test)]\nmod tests { fn a() { std::env::var_os(a); } }",
        ];
        for text in bad {
            assert_eq!(count(&ENVIRONMENT, "host/app/src/a.rs", text), 1, "{text}");
            assert_eq!(count(&ENVIRONMENT, "tests/cli/tests/a.rs", text), 1, "{text}");
            for place in ["host/config/src/a.rs", KERNELS_BUILD, TEST_DEVICES] {
                assert_eq!(count(&ENVIRONMENT, place, text), 0, "{text}");
            }
        }
        let good = [
            "// std::env::var(a)\nlet s = \"std::env::var\";",
            "std::env::current_exe(); std::env::consts::ARCH;",
            "command.env(\"A\", \"b\").env_remove(c); setting.env; S { env: a }",
            "use std::fs; let env = 3; f(env); env!(\"CARGO_PKG_VERSION\")",
            "use crate::env;",
        ];
        for text in good {
            assert_eq!(count(&ENVIRONMENT, "host/app/src/a.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn the_build_leaves_no_paths_in_the_product() {
        let dir = "const A: &str = concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/a\");";
        assert_eq!(count(&BUILD_ENVIRONMENT, "host/app/src/a.rs", dir), 1);
        assert_eq!(count(&BUILD_ENVIRONMENT, "host/app/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {dir} }}")), 0);
        assert_eq!(count(&BUILD_ENVIRONMENT, "tests/a/src/a.rs", dir), 0);
        assert_eq!(count(&BUILD_ENVIRONMENT, "tests/a/src/a.rs", "option_env!(\"HOME\")"), 1);
        assert_eq!(count(&BUILD_ENVIRONMENT, "host/app/src/a.rs", "env!(\"CARGO_PKG_VERSION\")"), 0);
        assert_eq!(count(&BUILD_ENVIRONMENT, "host/config/src/a.rs", "option_env!(\"A\")"), 0);
        let embedded = "const A: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/a\"));";
        assert_eq!(count(&BUILD_ENVIRONMENT, KERNELS, embedded), 0);
        assert_eq!(count(&BUILD_ENVIRONMENT, "host/app/src/a.rs", embedded), 1);
        assert_eq!(count(&BUILD_ENVIRONMENT, KERNELS, dir), 1);
    }

    #[test]
    fn some_crates_have_one_user() {
        let bad = [
            "use ash::vk;",
            "ash::Entry::load()",
            "use libloading;",
            "abi_stable::library::lib_header_from_path(a)",
            "ctrlc::set_handler(a)",
            "shaderc::Compiler::new()",
        ];
        for text in bad {
            assert_eq!(count(&FENCED_CRATES, "host/chain/src/a.rs", text), 1, "{text}");
        }
        assert_eq!(count(&FENCED_CRATES, "host/chain/src/a.rs", "let ash = 3; // ash::vk\nuse abi_stable::std_types::RStr;"), 0);
        assert_eq!(count(&FENCED_CRATES, "host/vk/src/a.rs", "use ash::vk;"), 0);
        assert_eq!(count(&FENCED_CRATES, "host/plugins/src/a.rs", "use libloading::Library;"), 0);
        assert_eq!(count(&FENCED_CRATES, KERNELS_BUILD, "shaderc::Compiler::new()"), 0);
    }

    #[test]
    fn threads_start_nowhere() {
        let bad = ["std::thread::spawn(f)", "thread::scope(f)", "use std::thread;", "use std::{fs, thread};", "use rayon::prelude::*;"];
        for text in bad {
            assert!(count(&THREADS, "host/app/src/a.rs", text) > 0, "{text}");
            assert_eq!(count(&THREADS, "tests/a/src/a.rs", text), 0, "{text}");
            assert_eq!(count(&THREADS, "host/a/build.rs", text), 0, "{text}");
            assert_eq!(count(&THREADS, "host/app/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {text} }}")), 0, "{text}");
        }
        assert_eq!(count(&THREADS, "host/app/src/a.rs", "std::thread::sleep(a); let thread = 3; \"rayon::a\""), 0);
    }

    #[test]
    fn only_the_program_prints() {
        for text in ["println!(\"a\")", "eprint!()", "dbg!(a)"] {
            assert_eq!(count(&PRINTING, "host/store/src/a.rs", text), 1, "{text}");
            assert_eq!(count(&PRINTING, "host/app/src/a.rs", text), 0, "{text}");
            assert_eq!(count(&PRINTING, "host/store/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ fn a() {{ {text} }} }}")), 0, "{text}");
        }
        assert_eq!(count(&PRINTING, "host/store/src/a.rs", "// println!()\nwriteln!(a); print != 3"), 0);
        assert_eq!(count(&PRINTING, "host/store/build.rs", "fn main() { println!(\"cargo:rerun-if-changed=a\"); }"), 0);
    }
}
