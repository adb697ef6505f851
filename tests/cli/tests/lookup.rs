//! Where the model and the plugins are looked for, and in which order.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use coli_test_cli::{Release, Run, copy_demo, copy_plugin, demo_case, fresh, library, library_name, says};
use coli_test_common::built;
use serde_json::Value;

/// The model that a short run names, after checking that it gave the reference's tokens.
fn model_of(run: Run) -> String {
    let case = demo_case(0);
    let report = run.args(&["run", "--json", &case.prompt, "--temp", "0", "-n", "4"]).finish().json();
    assert_eq!(report["text"], ", and the others");
    assert!(case.text.starts_with(report["text"].as_str().unwrap()));
    report["model"].as_str().unwrap().into()
}

fn no_args() -> [&'static str; 0] {
    []
}

fn same(have: &str, want: &Path) {
    assert_eq!(fs::canonicalize(have).unwrap(), fs::canonicalize(want).unwrap());
}

/// What a run lists of the plugin that is looked for; all others come from the source tree.
fn plugins_of(run: Run) -> Vec<Value> {
    let list = run.args(&["plugins", "--json"]).finish().json();
    let (olmoe, others): (Vec<Value>, Vec<Value>) = list.as_array().unwrap().iter().cloned().partition(|plugin| plugin["id"] == "olmoe");
    assert_eq!(others.len() + 1, built::plugin_ids().len());
    olmoe
}

/// The only accepted plugin is the one in this folder, with this library and origin, and the others are shadowed by it.
#[track_caller]
fn accepted_from(plugins: &[Value], folder: &Path, library: &Path, origin: &str) {
    let accepted: Vec<&Value> = plugins.iter().filter(|plugin| plugin["state"] == "accepted").collect();
    assert_eq!(accepted.len(), 1, "{plugins:#?}");
    same(accepted[0]["manifest"].as_str().unwrap(), &folder.join("olmoe.plugin.toml"));
    same(accepted[0]["library"].as_str().unwrap(), library);
    says(accepted[0]["origin"].as_str().unwrap(), &[origin]);
    assert!(plugins.iter().all(|plugin| plugin["state"] == "accepted" || plugin["state"] == "shadowed"), "{plugins:#?}");
}

/// A folder with the demo model.
fn demo() -> tempfile::TempDir {
    let folder = fresh();
    copy_demo(folder.path());
    folder
}

#[test]
fn the_built_program_finds_the_source_trees_demo_and_plugin_from_anywhere() {
    let elsewhere = fresh();
    same(&model_of(Run::coli(no_args()).dir(elsewhere.path())), &built::demo());
    let plugins = plugins_of(Run::coli(no_args()).dir(elsewhere.path()));
    accepted_from(&plugins, &built::plugins().join("olmoe"), &library(), "source tree");
}

#[test]
fn a_release_finds_its_own_demo_and_plugin_with_an_empty_environment() {
    let (release, elsewhere) = (Release::new(), fresh());
    same(&model_of(release.coli(no_args()).dir(elsewhere.path())), &release.path().join("demo"));
    let plugin = release.path().join("models/olmoe");
    let plugins = plugins_of(release.coli(no_args()).dir(elsewhere.path()));
    accepted_from(&plugins, &plugin, &plugin.join(library_name()), "beside the executable");
}

#[test]
fn a_release_says_that_it_runs_its_demo_model() {
    let release = Release::new();
    let case = demo_case(0);
    let finished = release.coli(["run", &case.prompt, "--temp", "0", "-n", "64"]).finish().succeeded();
    assert_eq!(finished.stdout, case.text);
    says(finished.lines()[0], &["demo model", release.path().join("demo").to_str().unwrap()]);
}

#[cfg(unix)]
#[test]
fn a_link_to_the_program_counts_as_the_program() {
    let (release, elsewhere) = (Release::new(), fresh());
    let link = elsewhere.path().join("coli");
    std::os::unix::fs::symlink(release.path().join("coli"), &link).unwrap();
    same(&model_of(Run::of(&link, no_args())), &release.path().join("demo"));
}

#[test]
fn the_model_option_beats_the_variable() {
    let (named, by_variable) = (demo(), demo());
    let run = Run::coli(["--verbose"]).env("COLI_MODEL", by_variable.path());
    let run = run.args(&["run", "--json", "Elizabeth", "--temp", "0", "-n", "4", "--model"]).arg(named.path());
    let finished = run.finish();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    same(report["model"].as_str().unwrap(), named.path());
}

#[test]
fn the_variable_beats_the_demo_beside_the_program() {
    let (release, by_variable) = (Release::new(), demo());
    same(&model_of(release.coli(no_args()).env("COLI_MODEL", by_variable.path())), by_variable.path());
}

#[test]
fn a_variable_that_names_no_model_is_refused_and_nothing_is_taken_in_its_place() {
    let release = Release::new();
    let absent = release.path().join("absent");
    let error = release.coli(["run", "x"]).env("COLI_MODEL", &absent).finish().failed(3);
    says(&error, &[absent.to_str().unwrap()]);
}

#[test]
fn the_demo_beside_the_program_beats_the_demo_variable() {
    let (release, by_variable) = (Release::new(), demo());
    same(&model_of(release.coli(no_args()).env("COLI_DEMO", by_variable.path())), &release.path().join("demo"));
    fs::remove_dir_all(release.path().join("demo")).unwrap();
    same(&model_of(release.coli(no_args()).env("COLI_DEMO", by_variable.path())), by_variable.path());
}

#[test]
fn the_demo_variable_beats_the_source_tree() {
    let by_variable = demo();
    same(&model_of(Run::coli(no_args()).env("COLI_DEMO", by_variable.path())), by_variable.path());
}

#[test]
fn a_demo_variable_that_names_no_model_is_a_usage_error_and_nothing_is_taken_in_its_place() {
    let (release, empty) = (Release::new(), fresh());
    let absent = empty.path().join("absent");
    for (folder, why) in [(absent.as_path(), "does not exist"), (empty.path(), "has no config.json")] {
        for run in [Run::coli(["run", "x"]), release.coli(["run", "x"])] {
            let error = run.env("COLI_DEMO", folder).finish().failed(2);
            says(&error, &[folder.to_str().unwrap(), why, "COLI_DEMO"]);
        }
    }
    // Nobody asks for the demo model there.
    let named = demo();
    let run = Run::coli(["run", "Elizabeth", "--temp", "0", "-n", "4", "--model"]).arg(named.path()).env("COLI_DEMO", &absent);
    assert_eq!(run.finish().succeeded().stdout, ", and the others");
}

#[test]
fn a_relative_model_is_relative_to_where_the_program_was_started() {
    let folder = fresh();
    copy_demo(&folder.path().join("m"));
    assert_eq!(model_of(Run::coli(no_args()).env("COLI_MODEL", "m").dir(folder.path())), "m");
}

#[test]
fn home_moves_what_lies_beside_the_program() {
    let (release, home) = (Release::new(), fresh());
    copy_demo(&home.path().join("demo"));
    let plugin = copy_plugin(&home.path().join("models"));
    same(&model_of(release.coli(no_args()).env("COLI_HOME", home.path())), &home.path().join("demo"));
    let plugins = plugins_of(release.coli(no_args()).env("COLI_HOME", home.path()));
    accepted_from(&plugins, &plugin, &plugin.join(library_name()), "beside the executable");
    let release = release.path().to_str().unwrap();
    assert!(plugins.iter().all(|plugin| !plugin["manifest"].as_str().unwrap().starts_with(release)), "{plugins:#?}");
}

#[test]
fn a_library_is_looked_for_beside_its_manifest_and_then_beside_the_program() {
    let home = fresh();
    let plugin = copy_plugin(&home.path().join("models"));
    fs::rename(plugin.join(library_name()), home.path().join(library_name())).unwrap();
    let plugins = plugins_of(Run::coli(no_args()).env("COLI_HOME", home.path()));
    accepted_from(&plugins, &plugin, &home.path().join(library_name()), "beside the executable");
}

#[test]
fn the_plugin_path_beats_the_plugins_beside_the_program() {
    let (release, first, second) = (Release::new(), fresh(), fresh());
    let plugin = copy_plugin(first.path());
    copy_plugin(second.path());
    let path = std::env::join_paths([first.path(), second.path()]).unwrap();
    let plugins = plugins_of(release.coli(no_args()).env("COLI_PLUGIN_PATH", &path));
    accepted_from(&plugins, &plugin, &plugin.join(library_name()), "COLI_PLUGIN_PATH");
    assert_eq!(plugins.len(), 4, "two folders, the release and the source tree: {plugins:#?}");
    same(&model_of(release.coli(no_args()).env("COLI_PLUGIN_PATH", &path)), &release.path().join("demo"));
}

#[test]
fn the_persons_data_folder_beats_the_source_tree() {
    let user = fresh();
    let data = user.path().join(".local/share");
    let plugin = copy_plugin(&data.join("coli/models"));
    for (name, value) in [("HOME", user.path()), ("XDG_DATA_HOME", data.as_path())] {
        let plugins = plugins_of(Run::coli(no_args()).env(name, value));
        accepted_from(&plugins, &plugin, &plugin.join(library_name()), "user's data folder");
    }
}

/// The forms of `--model-plugin` with a path, each with the folder to start in.
fn path_forms(plugin: &Path) -> Vec<(String, &Path)> {
    let models = plugin.parent().unwrap();
    let (manifest, library) = ("olmoe.plugin.toml".to_string(), library_name());
    let absolute = |name: &str| plugin.join(name).to_str().unwrap().to_string();
    let here = Path::new("/");
    vec![
        (absolute(&manifest), here),
        (absolute(""), here),
        (absolute(&library), here),
        (format!("olmoe/{manifest}"), models),
        ("./olmoe".into(), models),
        ("olmoe/".into(), models),
        (format!("./olmoe/{library}"), models),
        (manifest, plugin),
        (".".into(), plugin),
        (library, plugin),
    ]
}

#[test]
fn a_plugin_may_be_named_by_manifest_folder_or_library() {
    let folder = fresh();
    let plugin = copy_plugin(folder.path());
    for (form, dir) in path_forms(&plugin) {
        let run = Run::coli(["run", "-v", "Elizabeth", "--temp", "0", "-n", "4", "--model-plugin", &form]).dir(dir);
        let finished = run.finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ", and the others"), "{form}: {finished:#?}");
        let accepted: Vec<&str> =
            finished.lines().into_iter().filter(|line| line.contains(" accepted: ") && line.contains("olmoe")).collect();
        assert_eq!(accepted.len(), 1, "{form}: {finished:#?}");
        says(accepted[0], &["from --model-plugin"]);
    }
}

/// The proof that it is that folder's library which is loaded, and not another one of the name.
#[test]
fn a_plugin_that_was_named_by_path_is_not_replaced_by_one_that_works() {
    let folder = fresh();
    let plugin = copy_plugin(folder.path());
    fs::remove_file(plugin.join(library_name())).unwrap();
    fs::write(plugin.join(library_name()), "no library").unwrap();
    for (form, dir) in path_forms(&plugin) {
        let error = Run::coli(["run", "Elizabeth", "--model-plugin", &form]).dir(dir).finish().failed(3);
        says(&error, &[&library_name(), "not a shared library"]);
    }
}

#[test]
fn a_plugin_may_be_named_by_its_id() {
    let case = demo_case(0);
    let finished = Run::coli(["run", &case.prompt, "--temp", "0", "-n", "64", "--model-plugin", "olmoe"]).finish().succeeded();
    assert_eq!(finished.stdout, case.text);
}

#[test]
fn a_path_that_leads_to_no_plugin_is_refused() {
    let folder = fresh();
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("libalone.so"), "x").unwrap();
    fs::write(folder.path().join("other.toml"), "x").unwrap();
    for (form, why) in
        [("./absent", "No such file"), ("./empty", ".plugin.toml"), ("./libalone.so", ".plugin.toml"), ("./other.toml", ".plugin.toml")]
    {
        let error = Run::coli(["run", "x", "--model-plugin", form]).dir(folder.path()).finish().failed(3);
        says(&error, &[&format!("--model-plugin {form}"), why]);
    }
}
