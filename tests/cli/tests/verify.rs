//! `coli plugins verify` where there is no list of checksums, or none that can be believed. `tests/dist` has it on a release.
#![allow(clippy::unwrap_used)]

use std::fs;

use coli_test_cli::{Release, Run, says};

#[test]
fn without_a_list_there_is_nothing_to_verify() {
    for args in [&["plugins", "verify"][..], &["plugins", "verify", "--json"]] {
        says(&Run::coli(args).finish().failed(4), &["nothing to verify", "has no SHA256SUMS", "./coli.sh dist"]);
    }
}

#[test]
fn a_list_that_is_none_is_refused() {
    let release = Release::new();
    let sum = "0".repeat(64);
    for text in ["", "nonsense\n", &format!("{sum}  ../coli\n"), &format!("{sum}  /etc/passwd\n"), &sum[..63]] {
        fs::write(release.path().join("SHA256SUMS"), text).unwrap();
        says(&release.coli(["plugins", "verify"]).finish().failed(3), &["SHA256SUMS` is not a list of checksums", "unpack the archive"]);
    }
    fs::write(release.path().join("SHA256SUMS"), [0xff; 100]).unwrap();
    release.coli(["plugins", "verify"]).finish().failed(3);
}

/// A list, and what of it there is to say: nothing ends the comparison.
#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_listed_and_the_rest_is_compared() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let release = Release::new();
    let at = |name: &str| release.path().join(name);
    symlink("loop", at("demo/loop")).unwrap();
    fs::create_dir(at("models/closed")).unwrap();
    fs::set_permissions(at("models/closed"), fs::Permissions::from_mode(0o0)).unwrap();
    fs::write(at("models/a\u{202e}\u{1b}b"), "").unwrap();
    let (long, sum) = ("x".repeat(300), "0".repeat(64));
    let names = ["demo/loop", "a\0b", &long, "demo/none", "demo/tokenizer.json"];
    fs::write(at("SHA256SUMS"), names.map(|name| format!("{sum}  {name}\n")).concat()).unwrap();
    let text = release.coli(["plugins", "verify"]).finish();
    // Whoever may read everything reads that folder too.
    let reads_all = fs::read_dir(at("models/closed")).is_ok();
    let json = release.coli(["plugins", "verify", "--json"]).finish();
    fs::set_permissions(at("models/closed"), fs::Permissions::from_mode(0o700)).unwrap();
    says(
        &text.stdout,
        &[
            "missing  demo/none\n",
            "altered  demo/tokenizer.json\n",
            "unreadable demo/loop\n",
            "unreadable a\\0b\n",
            &format!("unreadable {long}\n"),
            "extra    models/a\\u{202e}\\u{1b}b\n",
            "extra    models/olmoe/olmoe.plugin.toml\n",
        ],
    );
    assert!(!text.stdout.contains(['\u{202e}', '\u{1b}', '\0']), "{text:#?}");
    assert_eq!(text.stdout.contains("unreadable models/closed\n"), !reads_all);
    says(&text.failed_after_output(3), &["of 5 files 1 are missing and 1 altered", "cannot be read", "unpack the archive again"]);
    assert!(json.stdout.contains("models/a\\u202e\\u001bb") && !json.stdout.contains('\u{202e}'), "{json:#?}");
    let report: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&report["listed"], &report["ok"]), (&5.into(), &false.into()));
    for name in ["demo/loop", "a\0b", &long] {
        assert!(report["unreadable"].as_array().unwrap().contains(&name.into()), "{report}");
    }
    assert!(report["extra"].as_array().unwrap().contains(&"models/a\u{202e}\u{1b}b".into()), "{report}");
    json.failed_after_output(3);
}

#[test]
fn a_file_that_is_listed_with_two_checksums_is_a_fault_of_the_list() {
    let release = Release::new();
    let line = |digit: &str| format!("{}  demo/tokenizer.json\n", digit.repeat(64));
    fs::write(release.path().join("SHA256SUMS"), [line("0"), line("1")].concat()).unwrap();
    says(&release.coli(["plugins", "verify"]).finish().failed(3), &["SHA256SUMS` has two checksums for `demo/tokenizer.json`"]);
}

/// What is no file is not opened: reading a pipe would wait for its other end.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_altered() {
    let release = Release::new();
    let name = release.path().join("demo/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&name).status().unwrap().success());
    fs::write(release.path().join("SHA256SUMS"), format!("{0}  demo/pipe\n{0}  models\n{0}  coli/x\n", "0".repeat(64))).unwrap();
    let finished = release.coli(["plugins", "verify"]).finish();
    says(
        &finished.stdout,
        &["altered  demo/pipe\n", "altered  models\n", "missing  coli/x\n", "extra    models/olmoe/olmoe.plugin.toml\n"],
    );
    finished.failed_after_output(3);
}
