//! Where cargo put the program and the plugin libraries. `cargo test` builds neither: `./coli.sh test` builds them first, and these
//! functions fail with that advice where they are missing.

use std::path::{Path, PathBuf};

/// The root of the source tree.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap().to_path_buf()
}

/// The folder with the built program: that of this executable, or of a test the one above its `deps`.
pub fn home() -> PathBuf {
    if let Some(home) = crate::drivers::variable(crate::drivers::HOME) {
        return home.into();
    }
    let exe = std::env::current_exe().unwrap();
    let folder = exe.parent().unwrap();
    if folder.ends_with("deps") { folder.parent().unwrap().to_path_buf() } else { folder.to_path_buf() }
}

/// The built program.
pub fn program() -> PathBuf {
    let path = home().join(format!("coli{}", std::env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "{} is not built: run ./coli.sh test, or cargo build --release first", path.display());
    path
}

/// The demo model's folder.
pub fn demo() -> PathBuf {
    root().join("models/olmoe/demo")
}

/// The plugins' folder of the source tree.
pub fn plugins() -> PathBuf {
    root().join("models")
}

/// The ids of the source tree's plugins, in order: folders of [`plugins`] with a manifest.
pub fn plugin_ids() -> Vec<String> {
    let entries = std::fs::read_dir(plugins()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut ids: Vec<String> = entries.filter(|id| plugins().join(id).join(format!("{id}.plugin.toml")).is_file()).collect();
    ids.sort();
    ids
}
