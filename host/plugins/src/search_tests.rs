//! Tests of the search for plugins, and the choice among them.

use super::*;
use coli_base::Kind;
use std::fs;

/// A folder tree with plugins in it.
struct Tree(tempfile::TempDir);

const OPS: [&str; 3] = ["norm@1", "attend@1", "attend@2"];

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A plugin in `folder/id` with a file in the library's place; `more` replaces the lines of the keys that it has.
    fn plugin(&self, folder: &str, id: &str, more: &str) -> PathBuf {
        let mut text = more.to_string();
        let lines = [
            format!("id = \"{id}\""),
            "version = \"0.1.0\"".into(),
            "abi = \"0.0\"".into(),
            format!("model_types = [\"{id}\"]"),
            "ops = [\"norm@1\"]".into(),
            format!("library = \"coli_{id}\""),
        ];
        for line in lines {
            let key = line.split(' ').next().unwrap();
            if !more.lines().any(|given| given.starts_with(key)) {
                text.push_str(&format!("\n{line}"));
            }
        }
        let path = self.write(&format!("{folder}/{id}/{id}.plugin.toml"), &text);
        let library = Manifest::read(&path).unwrap().library_file();
        self.write(&format!("{folder}/{id}/{library}"), "not a library");
        path
    }

    fn discover(&self, request: Option<&str>, folders: &[&str]) -> Result<Plugins> {
        let folders: Vec<Folder> =
            folders.iter().map(|name| Folder { path: self.path(name), origin: format!("<{name}>"), named: false }).collect();
        Plugins::discover(request.map(Request::parse).as_ref(), &folders, Host { ops: &OPS, home: &self.path("home") })
    }
}

fn states(plugins: &Plugins) -> Vec<(String, State, String)> {
    let known = |listing: &Listing| listing.id.clone().unwrap_or("?".into());
    plugins.listings().iter().map(|listing| (known(listing), listing.state, listing.origin.clone())).collect()
}

/// The reason for which the only candidate is refused.
fn reason(plugins: &Plugins) -> String {
    let listings = plugins.listings();
    assert_eq!((listings.len(), listings[0].state), (1, State::Refused), "{listings:?}");
    assert!(!listings[0].reason.contains('\n'));
    listings[0].reason.clone()
}

#[test]
fn folders_are_searched_in_order_and_the_first_of_an_id_counts() {
    let tree = Tree::new();
    tree.plugin("one", "b", "");
    tree.plugin("one", "a", "");
    let later = tree.plugin("two", "a", "");
    tree.plugin("two", "c", "");
    tree.write("one/unrelated/readme.md", "nothing");
    tree.write("one/file", "nothing");
    let plugins = tree.discover(None, &["one", "absent", "two", "one"]).unwrap();
    let expected = [
        ("a", State::Accepted, "<one>"),
        ("b", State::Accepted, "<one>"),
        ("a", State::Shadowed, "<two>"),
        ("c", State::Accepted, "<two>"),
    ];
    assert_eq!(states(&plugins), expected.map(|(id, state, origin)| (id.to_string(), state, origin.to_string())));
    let shadowed = &plugins.listings()[2];
    assert!(shadowed.reason.contains("one") && shadowed.reason.contains("found first"), "{}", shadowed.reason);
    assert_eq!(shadowed.manifest, later.display().to_string());
    assert_eq!(plugins.log_lines().len(), 4);
    assert!(plugins.log_lines()[2].contains("plugin a 0.1.0") && plugins.log_lines()[2].contains("shadowed: "));
}

#[test]
fn a_broken_manifest_is_kept_with_its_reason_and_claims_no_id() {
    let tree = Tree::new();
    tree.write("one/a/a.plugin.toml", "id = \"a\"");
    tree.plugin("two", "a", "");
    let plugins = tree.discover(None, &["one", "two"]).unwrap();
    assert_eq!(plugins.listings()[0].state, State::Refused);
    assert!(plugins.listings()[0].reason.contains("`version`"));
    assert!(plugins.log_lines()[0].contains("refused: "));
    assert_eq!(plugins.select(ModelKind::ModelType("a")).unwrap().plugin.origin, "<two>");
}

#[test]
fn a_refusal_names_what_differs() {
    let cases = [
        ("abi = \"7.0\"", "it was built against ABI 7.0, and this host has ABI 0.1"),
        ("ops = [\"norm@1\", \"attend@3\"]", "it needs op attend@3, which this host does not have, only attend@1, attend@2"),
        ("ops = [\"warp@1\"]", "it needs op warp@1, which this host does not have"),
    ];
    for (line, expected) in cases {
        let tree = Tree::new();
        let manifest = tree.plugin("one", "a", line);
        let plugins = tree.discover(Some("a"), &["one"]).unwrap();
        assert_eq!(reason(&plugins), expected);
        let error = plugins.select(ModelKind::ModelType("a")).unwrap_err();
        assert_eq!((error.kind, error.text), (Kind::Refused, format!("--model-plugin a: {}: {expected}", manifest.display())));
        let error = tree.discover(None, &["one"]).unwrap().select(ModelKind::ModelType("a")).unwrap_err();
        assert!(error.text.contains("would serve it but is refused") && error.text.contains(expected), "{}", error.text);
    }
}

#[test]
fn a_refused_plugin_still_shadows_a_later_one() {
    let tree = Tree::new();
    tree.plugin("one", "a", "abi = \"7.0\"");
    tree.plugin("two", "a", "");
    let plugins = tree.discover(None, &["one", "two"]).unwrap();
    assert_eq!(plugins.listings()[1].state, State::Shadowed);
    assert!(plugins.select(ModelKind::ModelType("a")).is_err());
}

#[test]
fn the_library_is_looked_for_beside_the_manifest_and_then_at_home() {
    let tree = Tree::new();
    let manifest = tree.plugin("one", "a", "");
    let file = Manifest::read(&manifest).unwrap().library_file();
    let beside = tree.path("one/a").join(&file);
    let library = |plugins: Plugins| plugins.select(ModelKind::ModelType("a")).map(|selection| selection.plugin.library.clone());
    let at_home = tree.write(&format!("home/{file}"), "not a library");
    assert_eq!(library(tree.discover(None, &["one"]).unwrap()).unwrap(), beside);
    fs::remove_file(&beside).unwrap();
    assert_eq!(library(tree.discover(None, &["one"]).unwrap()).unwrap(), at_home);
    fs::remove_file(&at_home).unwrap();
    let plugins = tree.discover(None, &["one"]).unwrap();
    assert!(reason(&plugins).contains(&format!("neither {} nor {}", beside.display(), at_home.display())), "{}", reason(&plugins));
}

#[test]
fn a_path_is_a_manifest_its_folder_or_its_library() {
    let tree = Tree::new();
    let manifest = tree.plugin("else/where", "a", "");
    let other = tree.plugin("one", "a", "");
    let library = tree.path("else/where/a").join(Manifest::read(&manifest).unwrap().library_file());
    for path in [&manifest, &tree.path("else/where/a"), &library] {
        let plugins = tree.discover(path.to_str(), &["one"]).unwrap();
        let chosen = plugins.select(ModelKind::ModelType("a")).unwrap().plugin;
        assert_eq!((&chosen.manifest_path, &chosen.library, chosen.origin.as_str()), (&manifest, &library, "--model-plugin"));
        assert_eq!(plugins.listings()[1].manifest, other.display().to_string());
        assert_eq!(plugins.listings()[1].state, State::Shadowed);
    }
    // The same manifest by way of a folder is not a second plugin.
    assert_eq!(tree.discover(other.to_str(), &["one"]).unwrap().listings().len(), 1);
}

#[test]
fn a_path_that_leads_to_no_plugin_is_refused_by_name() {
    let tree = Tree::new();
    let library = tree.path("one/a").join("libother.so");
    tree.plugin("one", "a", "");
    fs::write(&library, "").unwrap();
    let broken = tree.write("broken/b.plugin.toml", "id = 1");
    let twice = tree.path("twice");
    tree.write("twice/a.plugin.toml", "");
    tree.write("twice/b.plugin.toml", "");
    fs::create_dir(tree.path("empty")).unwrap();
    let cases = [
        (tree.path("absent/x.plugin.toml"), "No such file"),
        (tree.path("empty"), "no file in this folder ends in .plugin.toml"),
        (twice, "2 files in this folder"),
        (library, "names it"),
        (broken.clone(), "key `id`"),
        (tree.path("broken"), "key `id`"),
        (tree.write("one/a/settings.toml", ""), "ends in .plugin.toml"),
        (tree.write("broken/libb.so", ""), "key `id`"),
    ];
    for (path, text) in cases {
        let error = tree.discover(path.to_str(), &["one"]).unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
        assert!(error.text.starts_with(&format!("--model-plugin {}: ", path.display())) && error.text.contains(text), "{}", error.text);
    }
}

#[test]
fn of_several_manifests_in_a_folder_the_one_named_like_it_counts() {
    let tree = Tree::new();
    let manifest = tree.plugin("one", "a", "");
    tree.write("one/a/z.plugin.toml", "");
    let plugins = tree.discover(tree.path("one/a").to_str(), &[]).unwrap();
    assert_eq!(plugins.requested().unwrap().unwrap().manifest_path, manifest);
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let tree = Tree::new();
    tree.plugin("one", "a", "");
    tree.plugin("one", "b", "");
    let error = tree.discover(Some("x"), &["one"]).unwrap().requested().unwrap_err();
    assert_eq!((error.kind, error.text.as_str()), (Kind::Refused, "--model-plugin x: no such plugin; known are a, b"));
    let error = tree.discover(Some("x"), &["absent"]).unwrap().requested().unwrap_err();
    assert!(error.text.contains("no usable plugin was found in") && error.text.contains("absent"), "{}", error.text);
    assert_eq!(tree.discover(None, &["one"]).unwrap().requested().unwrap(), None);
}

#[test]
fn a_model_gets_the_first_plugin_that_serves_it() {
    let tree = Tree::new();
    tree.plugin("one", "a", "model_types = [\"shared\", \"a\"]");
    tree.plugin("two", "b", "model_types = [\"shared\"]\ngguf_architectures = [\"b-arch\"]");
    let plugins = tree.discover(None, &["one", "two"]).unwrap();
    let shared = plugins.select(ModelKind::ModelType("shared")).unwrap();
    assert_eq!(shared.plugin.manifest.id, "a");
    assert!(shared.note.unwrap().contains("found before b"));
    assert_eq!(plugins.select(ModelKind::ModelType("a")).unwrap().note, None);
    assert_eq!(plugins.select(ModelKind::GgufArchitecture("b-arch")).unwrap().plugin.manifest.id, "b");
    let error = plugins.select(ModelKind::ModelType("b-arch\n")).unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    let expected = "no plugin serves model type `b-arch`; served are model types shared, a by plugin a; \
                    model types shared and GGUF architectures b-arch by plugin b";
    assert_eq!(error.text, expected);
    let named = tree.discover(Some("b"), &["one", "two"]).unwrap();
    assert_eq!(named.select(ModelKind::ModelType("shared")).unwrap().plugin.manifest.id, "b");
}

#[test]
fn a_requested_plugin_that_does_not_serve_the_model_names_what_it_serves() {
    let tree = Tree::new();
    tree.plugin("one", "a", "");
    let error = tree.discover(Some("a"), &["one"]).unwrap().select(ModelKind::ModelType("olmoe")).unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    for part in ["--model-plugin a", "model types a", "`olmoe`", "with --model"] {
        assert!(error.text.contains(part), "{}", error.text);
    }
}

#[test]
fn verifying_refuses_what_does_not_load() {
    let tree = Tree::new();
    tree.plugin("one", "a", "");
    let mut plugins = tree.discover(None, &["one"]).unwrap();
    plugins.verify();
    assert!(reason(&plugins).contains("not a shared library"));
    assert!(plugins.listings()[0].library.is_some());
    let json = serde_json::to_value(&plugins.listings()[0]).unwrap();
    assert_eq!((json["state"].as_str(), json["abi"].as_str(), json["id"].as_str()), (Some("refused"), Some("0.0"), Some("a")));
}

#[test]
fn a_folder_that_cannot_be_searched_is_noted() {
    let tree = Tree::new();
    tree.write("file", "");
    let plugins = tree.discover(None, &["file"]).unwrap();
    assert!(plugins.log_lines()[0].contains("cannot be searched"), "{:?}", plugins.log_lines());
}
