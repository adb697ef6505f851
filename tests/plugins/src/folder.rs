//! A folder of plugins, and the program that is to use it.

use std::fs;
use std::path::{Path, PathBuf};

use coli_plugin_api::abi::ABI_VERSION;
use coli_test_cli::{Run, fresh};
use tempfile::TempDir;

use crate::libraries::file;
use crate::model::Model;

const OPS: &[&str] = &["append@1", "attend@1", "ew@1", "gather@1", "matmul@1", "norm@1", "sample@1", "take@1"];

/// What a manifest states.
#[derive(Debug, Clone)]
pub struct Stated<'a> {
    /// The plugin's id; also the name of its folder and its library.
    pub id: &'a str,
    /// Its ABI.
    pub abi: &'a str,
    /// The one model type that it serves.
    pub model_type: &'a str,
}

/// A folder of plugins.
pub struct Folder(TempDir);

impl Stated<'_> {
    /// What is right for the hostile plugin.
    pub const HOSTILE: Stated<'static> = Stated { id: "hostile", abi: ABI_VERSION, model_type: "hostile" };
}

impl Folder {
    /// An empty one.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(fresh())
    }

    /// One with the hostile plugin.
    pub fn hostile(library: &Path) -> Self {
        let folder = Self::new();
        folder.put(&Stated::HOSTILE, library);
        folder
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Adds a plugin with a copy of a library; gives the copy's path.
    pub fn put(&self, stated: &Stated<'_>, library: &Path) -> PathBuf {
        let bytes = fs::read(library).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
        self.put_bytes(stated, &bytes)
    }

    /// Adds a plugin whose library has these bytes; gives the library's path.
    pub fn put_bytes(&self, stated: &Stated<'_>, library: &[u8]) -> PathBuf {
        let Stated { id, abi, model_type } = stated;
        let folder = self.path().join(id);
        fs::create_dir(&folder).unwrap();
        let text =
            format!("id = {id:?}\nversion = \"0.1.0\"\nabi = {abi:?}\nmodel_types = [{model_type:?}]\nops = {OPS:?}\nlibrary = {id:?}\n");
        fs::write(folder.join(format!("{id}.plugin.toml")), text).unwrap();
        let path = folder.join(file(id));
        fs::write(&path, library).unwrap();
        path
    }

    /// A start of the program with these plugins.
    pub fn coli(&self, args: &[&str]) -> Run {
        Run::coli(args).env("COLI_PLUGIN_PATH", self.path())
    }

    /// A start of `coli eval logits` on a model.
    pub fn eval(&self, model: &Model) -> Run {
        self.coli(&["eval", "logits", "--ids", &model.ids_text(), "--model"]).arg(model.path())
    }
}
