//! The release archive: what is in it, and that it works where it is unpacked, with an empty environment.
//!
//! One archive serves all steps, since it takes seconds to make.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use coli_base::Kind;
use coli_config::{Baked, Environment};
use coli_kernels::Kernels;
use coli_test_cli::{Run, demo_case, library_name, says};
use coli_test_common::built;
use serde_json::{Value, json};

/// What a tool prints.
#[track_caller]
fn output(program: &str, args: &[&str], dir: &Path) -> String {
    let output = Command::new(program).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The plugins of the source tree.
fn plugins() -> BTreeSet<String> {
    let folders = fs::read_dir(built::plugins()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    folders.filter(|name| built::plugins().join(name).join(format!("{name}.plugin.toml")).is_file()).collect()
}

fn coli(release: &Path, args: &[&str]) -> Run {
    Run::of(&release.join("coli"), args)
}

#[test]
fn the_archive_works_where_it_is_unpacked() {
    let (made, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = coli_test_dist::write(made.path()).unwrap();
    the_same_files_give_the_same_bytes(&archive);
    entries_have_no_owner_and_no_date_of_their_own(&archive);

    output("tar", &["-xf", archive.to_str().unwrap()], elsewhere.path());
    let folders: Vec<PathBuf> = fs::read_dir(elsewhere.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [release] = folders.as_slice() else { panic!("{folders:?}") };
    assert_eq!(archive.file_name().unwrap().to_str(), Some(format!("{}.tar.gz", release.file_name().unwrap().display()).as_str()));

    no_path_of_this_machine_is_in_it(release);
    every_linked_crate_has_its_licence(release);
    it_runs_the_demo_model(release);
    it_finds_its_own_plugins(release);
    its_kernels_fit_and_damaged_ones_are_refused(release);
    verify_finds_what_changed(release);
}

fn the_same_files_give_the_same_bytes(archive: &Path) {
    let dir = archive.parent().unwrap();
    output("sha256sum", &["--check", "--strict", &format!("{}.sha256", archive.file_name().unwrap().display())], dir);
    let again = coli_test_dist::write(&dir.join("again")).unwrap();
    assert!(fs::read(archive).unwrap() == fs::read(again).unwrap());
}

fn entries_have_no_owner_and_no_date_of_their_own(archive: &Path) {
    let listing = output("tar", &["--utc", "--numeric-owner", "--full-time", "-tvf", archive.to_str().unwrap()], archive.parent().unwrap());
    let mut names = Vec::new();
    for line in listing.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[1], words[3], words[4]), ("0/0", "1970-01-01", "00:00:00"), "{line}");
        let is_program = words[5].ends_with("/coli");
        assert!(words[0] == "drwxr-xr-x" || words[0] == if is_program { "-rwxr-xr-x" } else { "-rw-r--r--" }, "{line}");
        names.push(words[5]);
    }
    let inside = |name: &&str| !name.ends_with('/');
    let tops: BTreeSet<&str> = names.iter().filter(|name| inside(name)).map(|name| name.split('/').nth(1).unwrap()).collect();
    let expected = ["CHANGELOG.md", "LICENSE", "README.md", "SHA256SUMS", "coli", "demo", "licences", "models", "shaders"];
    assert_eq!(tops.into_iter().collect::<Vec<_>>(), expected);
}

fn no_path_of_this_machine_is_in_it(release: &Path) {
    let root = built::root().display().to_string();
    let mut words = vec![format!("{root}/"), root, "/registry/src/".into()];
    // Of a home there is more than its name in a path, and a short name may be a word by itself.
    words.extend(Environment::read(Baked::default()).unwrap().user_home.map(|home| format!("{}/", home.display())));
    words.retain(|word| word.len() > 2);
    for file in plugins().iter().map(|name| format!("models/{name}/{DLL_PREFIX}coli_{name}{DLL_SUFFIX}")).chain(["coli".into()]) {
        let bytes = fs::read(release.join(&file)).unwrap();
        for word in &words {
            let found = bytes.windows(word.len()).position(|window| window == word.as_bytes());
            let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(40)..(at + 80).min(bytes.len())]).into_owned());
            assert_eq!(around, None, "{word} is in {file}");
        }
    }
}

/// Against cargo's own tree of what the program and the plugins link.
fn every_linked_crate_has_its_licence(release: &Path) {
    let packages: Vec<String> = plugins().iter().map(|name| format!("--package=coli-{name}")).collect();
    let mut args = vec!["tree", "--locked", "--prefix=none", "--edges=normal,no-proc-macro", "--package=coli-app"];
    args.extend(packages.iter().map(String::as_str));
    let tree = output("cargo", &args, &built::root());
    let mut crates = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        if !name.starts_with("coli-") {
            crates.insert(format!("{name}-{}", version.trim_start_matches('v')));
        }
    }
    assert!(crates.len() > 20, "{tree}");
    let page = fs::read_to_string(release.join("licences/README.md")).unwrap();
    for id in crates.iter().map(String::as_str).chain(["coli", "demo", "rust-std"]) {
        let folder = release.join("licences").join(id);
        let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>() > 400, "{id}");
        says(&page, &[&format!("| `{id}`")]);
    }
}

fn it_runs_the_demo_model(release: &Path) {
    let text = coli(release, &["run", "--temp", "0", "-n", "8", "Emma was"]).finish().succeeded().stdout;
    assert!(text.len() > 8, "{text}");
    let case = demo_case(0);
    let report = coli(release, &["run", "--temp", "0", "-n", "8", "--json", &case.prompt]).finish().json();
    assert_eq!(report["tokens"], json!(case.tokens[..8]));
    let demo = fs::canonicalize(release.join("demo")).unwrap();
    assert_eq!(fs::canonicalize(report["model"].as_str().unwrap()).unwrap(), demo);
}

fn it_finds_its_own_plugins(release: &Path) {
    let list = coli(release, &["plugins", "--json"]).finish().json();
    let found: BTreeSet<String> = list.as_array().unwrap().iter().map(|plugin| plugin["id"].as_str().unwrap().into()).collect();
    assert_eq!(found, plugins(), "{list}");
    let models = fs::canonicalize(release.join("models")).unwrap();
    for plugin in list.as_array().unwrap() {
        assert_eq!(plugin["state"], "accepted", "{plugin}");
        assert!(fs::canonicalize(plugin["library"].as_str().unwrap()).unwrap().starts_with(&models), "{plugin}");
    }
    says(&coli(release, &["plugins"]).finish().succeeded().stdout, &["olmoe", "accepted"]);
}

fn its_kernels_fit_and_damaged_ones_are_refused(release: &Path) {
    let file = release.join("shaders/kernels.bin");
    let kernels = Kernels::open(None, Some(release)).unwrap();
    assert_eq!(kernels.origin(), format!("`{}`", file.display()));
    let modules = coli_shaders::device::modules();
    assert!(!modules.is_empty() && modules.iter().all(|module| kernels.get(&module.name).is_some()));
    assert_eq!(Kernels::open(Some(&release.join("shaders")), None).unwrap().names().count(), modules.len());

    let whole = fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for bytes in [&damaged[..], &whole[..whole.len() / 2], b""] {
        fs::write(&file, bytes).unwrap();
        let error = Kernels::open(None, Some(release)).unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
        assert!(!error.text.contains('\n'), "{error}");
        says(&error.text, &["shaders/kernels.bin", "take the file from this program's own release"]);
    }
    fs::write(&file, whole).unwrap();
}

fn verify_finds_what_changed(release: &Path) {
    let listed = output("sha256sum", &["--check", "--strict", "SHA256SUMS"], release).lines().count();
    let whole = coli(release, &["plugins", "verify"]).finish().succeeded();
    assert_eq!(whole.stdout, format!("all {listed} files are as released\n"));
    let report = verified(release, 0);
    assert_eq!((&report["ok"], &report["listed"]), (&json!(true), &json!(listed)));

    let library = format!("models/olmoe/{}", library_name());
    let mut bytes = fs::read(release.join(&library)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(release.join(&library), bytes).unwrap();
    fs::remove_file(release.join("models/olmoe/olmoe.plugin.toml")).unwrap();
    fs::remove_file(release.join("LICENSE")).unwrap();
    fs::create_dir(release.join("models/other")).unwrap();
    fs::write(release.join("models/other/other.plugin.toml"), "").unwrap();
    let kernels = release.join("shaders/kernels.bin");
    fs::write(&kernels, [&fs::read(&kernels).unwrap()[..], b" "].concat()).unwrap();
    fs::write(release.join("notes.txt"), "outside of models/ there may be more").unwrap();

    let report = verified(release, 3);
    assert_eq!(report["ok"], false);
    assert_eq!(report["altered"], json!([library, "shaders/kernels.bin"]));
    assert_eq!(report["missing"], json!(["LICENSE", "models/olmoe/olmoe.plugin.toml"]));
    assert_eq!(report["extra"], json!(["models/other/other.plugin.toml"]));
    let finished = coli(release, &["plugins", "verify"]).finish();
    let expected = [
        "missing  LICENSE",
        "missing  models/olmoe/olmoe.plugin.toml",
        &format!("altered  {library}"),
        "altered  shaders/kernels.bin",
        "extra    models/other/other.plugin.toml",
    ];
    assert_eq!(finished.stdout, expected.map(|line| format!("{line}\n")).concat());
    says(&finished.failed_after_output(3), &["2 are missing and 2 altered", "1 more", "unpack the archive again"]);
}

/// What `verify --json` prints, where it ends with this code.
fn verified(release: &Path, code: i32) -> Value {
    let finished = coli(release, &["plugins", "verify", "--json"]).finish();
    assert_eq!(finished.code, Some(code), "{finished:#?}");
    serde_json::from_str(&finished.stdout).unwrap()
}
