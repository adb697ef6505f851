//! What a settings file may say, which one is read, and what counts more.

use std::fs;
use std::path::{Path, PathBuf};

use coli_base::Kind;

use crate::places::Baked;
use crate::table::{Key, Reader, SETTINGS};
use crate::value::{Source, Value};
use crate::{Environment, Values};

fn environment(values: &[(&str, &str)]) -> Environment {
    Environment::from_values(values.iter().map(|(name, value)| (name.into(), value.into())), Baked::default()).unwrap()
}

/// What a file with this text in a folder of its own says.
fn read(text: &str) -> Result<(Values, PathBuf), coli_base::Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("coli.toml");
    fs::write(&path, text).unwrap();
    let environment = environment(&[]).with_file(&path)?;
    Ok((environment.values, folder.path().into()))
}

const EVERY: &str = r#"
model = "m"
model_plugin = "p"
device = "cpu"
precision = "exact"
ctx = 1_024
threads = 3
vram_limit = 4096
tokens = 7
temp = 1
top_k = 0x10
top_p = 5e-1
min_p = 0.25
repeat_penalty = 1.5
seed = 18446744073709551615
plugin_path = ["a", "/b"]
demo = "/d"
home = "h"
vk_shaders = "s"
vk_loader = "/l"
"#;

#[test]
fn every_setting_may_stand_in_a_file() {
    let (values, folder) = read(EVERY).unwrap();
    for setting in SETTINGS {
        let Reader::Program(key) = setting.reader else { continue };
        assert!(matches!(values.get(key), Some((_, Source::File(path))) if *path == folder.join("coli.toml")), "{}", setting.key);
    }
    assert_eq!((values.count(Key::Ctx), values.count(Key::TopK), values.whole(Key::Seed)), (1024, 16, Some(u64::MAX)));
    assert_eq!((values.number(Key::Temp), values.number(Key::TopP)), (1.0, 0.5));
    assert_eq!(values.text(Key::ModelPlugin), Some("p"));
}

#[test]
fn a_relative_path_means_the_files_folder() {
    let (values, folder) = read(EVERY).unwrap();
    assert_eq!(values.path(Key::Model), Some(folder.join("m").as_path()));
    assert_eq!(values.paths(Key::PluginPath), [folder.join("a"), "/b".into()]);
    assert_eq!(values.path(Key::Demo), Some(Path::new("/d")));
}

#[test]
fn a_fault_is_one_line_with_file_line_key_and_what_was_expected() {
    let cases = [
        ("temp = 0.5\ntmep = 1", &["line 2", "`tmep`", "did you mean `temp`?"][..]),
        ("\n\nvery_strange = 1", &["line 3", "known are model, model_plugin"]),
        ("temp = \"warm\"", &["line 1", "temp is \"warm\" (string)", "expected a number from 0 to 100"]),
        ("temp = -1", &["temp is -1 (integer)", "0 to 100"]),
        ("temp = nan", &["temp is nan (float)"]),
        ("top_k = 1.5", &["top_k is 1.5 (float)", "expected a whole number from 0 to 4294967295"]),
        ("ctx = 0", &["ctx is 0", "from 1 to"]),
        ("seed = -1", &["seed is -1", "whole number"]),
        ("model = 3", &["model is 3 (integer)", "a path in quotes"]),
        ("model = \"\"", &["model is \"\"", "a path in quotes"]),
        ("plugin_path = \"a\"", &["plugin_path is \"a\" (string)", "a list of folders"]),
        ("plugin_path = [1]", &["plugin_path is [1]"]),
        ("[temp]\nx = 1", &["line 1", "(table)"]),
        ("temp = = 1", &["line 1", "not TOML"]),
        ("temp = 1\ntemp = 2", &["line 2", "not TOML"]),
        ("x = 1\n= 3", &["line 2", "not TOML"]),
    ];
    for (text, parts) in cases {
        let error = read(text).unwrap_err();
        assert_eq!(error.kind, Kind::Usage, "{text}");
        assert!(!error.text.contains('\n'));
        for part in [&["coli.toml`"], parts].concat() {
            assert!(error.text.contains(part), "`{part}` is not in: {}", error.text);
        }
    }
}

#[test]
fn what_is_no_text_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    fs::write(&path, b"temp = 1\n\xff").unwrap();
    let error = environment(&[]).with_file(&path).unwrap_err();
    assert!(error.text.contains("not UTF-8 at byte 9"), "{error}");
    let absent = environment(&[]).with_file(&folder.path().join("absent")).unwrap_err();
    assert!(absent.text.contains("absent`") && absent.kind == Kind::Usage, "{absent}");
    fs::write(&path, vec![b'#'; 2 << 20]).unwrap();
    assert!(environment(&[]).with_file(&path).unwrap_err().text.contains("more than 1048576 bytes"));
}

/// A link that leads nowhere, or back to itself, is there: what it should have said would go unnoticed.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_found_and_named() {
    let user = tempfile::tempdir().unwrap();
    let config = user.path().join("coli/coli.toml");
    fs::create_dir(user.path().join("coli")).unwrap();
    for target in [&config, Path::new("nowhere")] {
        std::os::unix::fs::symlink(target, &config).unwrap();
        let environment = environment(&[("XDG_CONFIG_HOME", user.path().to_str().unwrap())]);
        assert_eq!(environment.settings_file(None), Some(config.clone()));
        let error = environment.with_file(&config).unwrap_err();
        assert!(error.kind == Kind::Usage && error.text.contains(config.to_str().unwrap()), "{error}");
        fs::remove_file(&config).unwrap();
    }
}

#[test]
fn the_environment_counts_more_than_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("coli.toml");
    fs::write(&path, "temp = 0.1\ntop_k = 3\nplugin_path = [\"/f\"]").unwrap();
    let environment = environment(&[("COLI_TEMP", "0.2")]).with_file(&path).unwrap();
    assert_eq!(environment.values.get(Key::Temp), Some((&Value::Number(0.2), &Source::Environment("COLI_TEMP"))));
    assert_eq!(environment.values.get(Key::TopK), Some((&Value::Whole(3), &Source::File(path))));
    let places = environment.plugin_places(Path::new("/h"));
    assert_eq!((places[0].path.as_path(), places[0].origin), (Path::new("/f"), "coli.toml"));
}

#[test]
fn the_named_file_is_read_else_the_persons() {
    let user = tempfile::tempdir().unwrap();
    let config = user.path().join(".config/coli/coli.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let home = [("HOME", user.path().to_str().unwrap())];
    assert_eq!(environment(&home).settings_file(None), None);
    fs::write(&config, "").unwrap();
    assert_eq!(environment(&home).settings_file(None), Some(config.clone()));
    assert_eq!(environment(&home).settings_file(Some(Path::new("absent"))), Some("absent".into()));
    let xdg = user.path().join("xdg");
    fs::create_dir_all(xdg.join("coli")).unwrap();
    fs::write(xdg.join("coli/coli.toml"), "").unwrap();
    let both = environment(&[home[0], ("XDG_CONFIG_HOME", xdg.to_str().unwrap())]);
    assert_eq!(both.settings_file(None), Some(xdg.join("coli/coli.toml")));
    let relative = environment(&[home[0], ("XDG_CONFIG_HOME", "relative")]);
    assert_eq!(relative.settings_file(None), Some(config));
}
