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
