//! The real olmoe library through the loader: found, loaded, called, and refused where it is not what its manifest says.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use coli_base::{Error, Kind};
use coli_plugin_api::codec;
use coli_plugin_api::describe::{Container, DescribeRequest, SegmentName};
use coli_plugins::{Folder, Found, Host, Library, Manifest, ModelKind, PluginModel, Plugins};
use coli_test_common::built;
use tempfile::TempDir;

const MANIFEST: &str = "olmoe.plugin.toml";

/// A folder of plugins with a copy of olmoe in it.
struct Copy(TempDir);

impl Copy {
    fn new() -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        fs::create_dir(copy.0.path().join("olmoe")).unwrap();
        fs::copy(built::plugins().join("olmoe").join(MANIFEST), copy.manifest()).unwrap();
        let built = built::home().join(copy.library().file_name().unwrap());
        fs::copy(&built, copy.library()).unwrap_or_else(|error| panic!("{} is not built ({error}): run ./coli.sh test", built.display()));
        copy
    }

    fn manifest(&self) -> PathBuf {
        self.0.path().join("olmoe").join(MANIFEST)
    }

    fn library(&self) -> PathBuf {
        let manifest = Manifest::read(&built::plugins().join("olmoe").join(MANIFEST)).unwrap();
        self.0.path().join("olmoe").join(manifest.library_file())
    }

    /// Replaces a line of the manifest, which must be there.
    fn state(self, line: &str, other: &str) -> Self {
        let text = fs::read_to_string(self.manifest()).unwrap();
        assert!(text.contains(line), "{text}");
        fs::write(self.manifest(), text.replace(line, other)).unwrap();
        self
    }

    fn discover(&self) -> Plugins {
        let ops: Vec<String> = coli_shaders::ops::all().into_iter().map(|op| op.id).collect();
        let ops: Vec<&str> = ops.iter().map(String::as_str).collect();
        let folder = Folder { path: self.0.path().into(), origin: "the test".into(), named: true };
        // No library lies in the place of the program, so only the copy beside the manifest can be found.
        Plugins::discover(None, &[folder], Host { ops: &ops, home: Path::new("") }).unwrap()
    }

    fn found(&self) -> Found {
        let found = self.discover().select(ModelKind::ModelType("olmoe")).unwrap().plugin.clone();
        assert_eq!(found.library, self.library());
        found
    }

    fn load(&self) -> Result<Library, Error> {
        Library::load(&self.found())
    }

    /// The line with which the library is refused.
    fn refusal(&self) -> String {
        let error = self.load().err().unwrap();
        assert_eq!(error.kind, Kind::Refused);
        assert!(!error.text.contains('\n'), "{}", error.text);
        assert!(error.text.contains(self.library().to_str().unwrap()), "{}", error.text);
        error.text
    }
}

/// What the host tells of the golden model, with another number of layers.
fn request(layers: u32) -> DescribeRequest {
    let checkpoint = coli_store::open(&built::root().join("models/olmoe/golden/olmoe")).unwrap();
    let mut config = checkpoint.config().clone();
    config["num_hidden_layers"] = layers.into();
    DescribeRequest { container: Container::Hf, config, tensors: checkpoint.facts(), tokenizer: None }
}

#[test]
fn a_copied_folder_is_found_loaded_and_describes_its_model() {
    let copy = Copy::new();
    let model = PluginModel::new(&copy.load().unwrap()).unwrap();
    assert_eq!(model.id(), "olmoe");
    let description = model.describe(&request(3)).unwrap();
    assert_eq!((description.vocab, description.context_max), (256, 512));
    let layers = (0..3).map(SegmentName::Layer);
    let segments: Vec<SegmentName> = [SegmentName::Embed].into_iter().chain(layers).chain([SegmentName::Head]).collect();
    assert_eq!(description.segments, segments);
}

#[test]
fn recordings_decode_and_encode_to_the_same_bytes() {
    let model = PluginModel::new(&Copy::new().load().unwrap()).unwrap();
    let description = model.describe(&request(3)).unwrap();
    let ops = Manifest::read(&built::plugins().join("olmoe").join(MANIFEST)).unwrap().ops;
    let mut used = Vec::new();
    for segment in &description.segments {
        let bytes = model.record(*segment).unwrap();
        let recording = codec::decode(&bytes).unwrap();
        assert_eq!(codec::encode(&recording).unwrap(), bytes, "{segment}");
        assert_eq!(model.record(*segment).unwrap(), bytes, "{segment}: recording it again gives something else");
        used.extend(recording.ops.into_iter().map(|op| op.name));
    }
    used.sort();
    used.dedup();
    assert_eq!(used, ops, "the manifest names the ops that are recorded");
}

#[test]
fn nothing_works_before_describe() {
    let model = PluginModel::new(&Copy::new().load().unwrap()).unwrap();
    let error = model.record(SegmentName::Embed).unwrap_err();
    assert!(error.kind == Kind::Refused && error.text.contains("describe"), "{}", error.text);
    assert!(model.ids("tokens", &[1]).unwrap_err().text.contains("describe"));
    // The failed calls have not spoilt it.
    model.describe(&request(3)).unwrap();
    model.record(SegmentName::Embed).unwrap();
}

#[test]
fn a_failed_describe_leaves_nothing_to_record() {
    let model = PluginModel::new(&Copy::new().load().unwrap()).unwrap();
    let error = model.describe(&request(0)).unwrap_err();
    assert!(error.kind == Kind::Refused && error.text.contains("num_hidden_layers"), "{}", error.text);
    assert!(model.record(SegmentName::Embed).is_err());
}

#[test]
fn a_second_describe_is_an_error_and_changes_nothing() {
    let model = PluginModel::new(&Copy::new().load().unwrap()).unwrap();
    model.describe(&request(1)).unwrap();
    let error = model.describe(&request(3)).unwrap_err();
    assert!(error.text.contains("twice"), "{}", error.text);
    assert!(model.record(SegmentName::Layer(0)).is_ok());
    assert!(model.record(SegmentName::Layer(1)).is_err());
}

#[test]
fn a_segment_that_is_not_listed_is_an_error_that_names_it() {
    let model = PluginModel::new(&Copy::new().load().unwrap()).unwrap();
    let description = model.describe(&request(3)).unwrap();
    let others = [SegmentName::Layer(3), SegmentName::Layer(u32::MAX), SegmentName::Setup, SegmentName::Encode(0), SegmentName::Draft(0)];
    for segment in others {
        assert!(!description.segments.contains(&segment));
        let error = model.record(segment).unwrap_err();
        assert!(error.kind == Kind::Refused && error.text.contains(&segment.to_string()), "{}", error.text);
    }
}

/// Both from the same library, and each from a library of its own.
#[test]
fn two_models_know_nothing_of_each_other() {
    let (one, other) = (Copy::new(), Copy::new());
    let loaded = one.load().unwrap();
    for libraries in [[&loaded, &one.load().unwrap()], [&loaded, &other.load().unwrap()]] {
        let [small, large] = libraries.map(|library| PluginModel::new(library).unwrap());
        let (small_description, large_description) = (small.describe(&request(1)).unwrap(), large.describe(&request(3)).unwrap());
        assert_eq!((small_description.segments.len(), large_description.segments.len()), (3, 5));
        assert!(small.record(SegmentName::Layer(2)).is_err());
        let last = large.record(SegmentName::Layer(2)).unwrap();
        drop(small);
        assert_eq!(large.record(SegmentName::Layer(2)).unwrap(), last, "the other model's end changed this one");
    }
}

#[test]
fn a_library_that_is_cut_short_is_refused() {
    let copy = Copy::new();
    let whole = fs::read(copy.library()).unwrap();
    let parts = (1..8).map(|part| whole.len() / 8 * part);
    for len in [0, 1, 63, 64, 4096].into_iter().chain(parts).chain([whole.len() - 1]) {
        fs::write(copy.library(), &whole[..len]).unwrap();
        let text = copy.refusal();
        assert!(text.contains(if len < 64 { "not a shared library" } else { "cut short" }), "{len}: {text}");
    }
}

#[test]
fn a_manifest_that_states_another_id_or_version_is_refused_with_both() {
    let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    let cases = [
        ("id = \"olmoe\"", "id = \"other\"", ["id olmoe", "states other"]),
        (&version, "version = \"9.8.7\"", [env!("CARGO_PKG_VERSION"), "9.8.7"]),
        ("abi = \"0.1\"", "abi = \"0.77\"", ["ABI minor version 1", "77"]),
    ];
    for (line, other, parts) in cases {
        let text = Copy::new().state(line, other).refusal();
        assert!(parts.iter().all(|part| text.contains(part)), "{other}: {text}");
    }
}

#[test]
fn a_manifest_that_states_another_abi_is_refused_with_both_before_its_library_is_opened() {
    let copy = Copy::new().state("abi = \"0.1\"", "abi = \"7.3\"");
    fs::remove_file(copy.library()).unwrap();
    let error = copy.discover().select(ModelKind::ModelType("olmoe")).unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    assert!(error.text.contains("ABI 7.3") && error.text.contains("ABI 0.1") && !error.text.contains('\n'), "{}", error.text);
}
