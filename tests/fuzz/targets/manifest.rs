//! Any text as a plugin's manifest: a manifest whose fields hold, or one line that says what is wrong.
#![no_main]

use coli_plugins::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Manifest::parse(text) {
        Ok(manifest) => {
            assert!(!manifest.model_types.is_empty() || !manifest.gguf_architectures.is_empty());
            assert!(!manifest.library_file().contains(std::path::is_separator));
        }
        Err(why) => assert!(why.len() < 4096 && !why.contains('\n'), "{why}"),
    }
});
