//! Tests of the library loader: what is refused, and how layouts are compared.

use super::*;
use crate::manifest::Manifest;
use abi_stable::prefix_type::PrefixTypeTrait as _;
use abi_stable::std_types::{RErr, ROption, RResult, RStr, RString};
use coli_base::Kind;
use coli_plugin_api::abi::{ABI_MAJOR, LogFn, PluginBox, PluginModule, RawDevice};
use std::path::PathBuf;

fn found(library: PathBuf) -> Found {
    let text = "id = \"x\"\nversion = \"0.1.0\"\nabi = \"0.0\"\nmodel_types = [\"x\"]\nops = []\nlibrary = \"x\"";
    Found { manifest: Manifest::parse(text).unwrap(), manifest_path: "x.plugin.toml".into(), library, origin: "a test".into() }
}

/// The refusal of a library with these bytes.
fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libx.so");
    std::fs::write(&path, bytes).unwrap();
    let error = Library::load(&found(path.clone())).err().unwrap();
    assert_eq!(error.kind, Kind::Refused);
    assert!(error.text.starts_with(&format!("plugin x: library {} ", path.display())) && !error.text.contains('\n'), "{}", error.text);
    error.text
}

#[test]
fn what_is_no_library_is_refused() {
    refusal(b"just some text, and enough of it that it could hold a header of a library file");
    refusal(b"");
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join("absent.so")] {
        assert_eq!(Library::load(&found(path)).err().unwrap().kind, Kind::Refused);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_that_is_cut_short_does_not_end_the_process() {
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(refusal(&own[..own.len() / 2]).contains("cut short"));
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_plugin_is_refused() {
    // An executable, which the system's loader will not take.
    assert!(refusal(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).contains("cannot be opened"));
    // A real library, which exports no plugin: the C library that this test itself uses.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(libc) = maps.split_whitespace().find(|word| word.contains("libc.so") || word.contains("/libc-")) else { return };
    let error = Library::load(&found(libc.into())).err().unwrap();
    assert!(error.text.contains("exports no plugin module"), "{}", error.text);
}

/// Root modules as other versions of the contract would have them.
#[allow(dead_code, missing_docs, non_camel_case_types, unsafe_code)]
#[allow(clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]
mod layouts {
    pub mod now {
        #[repr(C)]
        #[derive(abi_stable::StableAbi)]
        #[sabi(kind(Prefix(prefix_ref = Module_Ref)))]
        #[sabi(missing_field(panic))]
        pub struct Module {
            pub first: u32,
            #[sabi(last_prefix_field)]
            pub second: u32,
        }
    }
    pub mod appended {
        #[repr(C)]
        #[derive(abi_stable::StableAbi)]
        #[sabi(kind(Prefix(prefix_ref = Module_Ref)))]
        #[sabi(missing_field(option))]
        pub struct Module {
            pub first: u32,
            #[sabi(last_prefix_field)]
            pub second: u32,
            pub third: u64,
        }
    }
    pub mod changed {
        #[repr(C)]
        #[derive(abi_stable::StableAbi)]
        #[sabi(kind(Prefix(prefix_ref = Module_Ref)))]
        #[sabi(missing_field(panic))]
        pub struct Module {
            pub first: u64,
            #[sabi(last_prefix_field)]
            pub second: u32,
        }
    }
}

#[test]
fn fields_at_the_end_are_accepted_both_ways_and_a_change_is_named_in_one_line() {
    let now = layouts::now::Module_Ref::LAYOUT;
    let appended = layouts::appended::Module_Ref::LAYOUT;
    let changed = layouts::changed::Module_Ref::LAYOUT;
    // Twice, since an outcome must not depend on the comparisons before it.
    for _ in 0..2 {
        for (host, plugin) in [(now, now), (now, appended), (appended, now), (appended, appended)] {
            assert_eq!(compare(host, plugin), Ok(()));
        }
        for (host, plugin) in [(now, changed), (changed, now)] {
            let text = compare(host, plugin).unwrap_err();
            assert!(text.contains(": expected ") && text.contains(", found "), "{text}");
            assert!(text.contains("u64") && text.contains("u32") && !text.contains('\n') && text.len() < 400, "{text}");
        }
    }
}

extern "C" fn never(_: LogFn) -> RResult<PluginBox, RString> {
    RErr("not called".into())
}

extern "C" fn no_device(_: RStr<'_>, _: RStr<'_>) -> RResult<ROption<RawDevice>, RString> {
    RErr("not called".into())
}

#[test]
fn a_module_must_unwind_and_agree_with_its_manifest() {
    let module = |abi_minor, panic_unwind, id: &'static str, version: &'static str| {
        let (id, version) = (RStr::from_str(id), RStr::from_str(version));
        PluginModule { abi_major: ABI_MAJOR, abi_minor, panic_unwind, id, version, new: never, op_device: no_device }.leak_into_prefix()
    };
    let verdict = |module| check_module(&module, &found("libx.so".into()));
    assert_eq!(verdict(module(0, true, "x", "0.1.0")), Ok(()));
    assert!(verdict(module(0, false, "x", "0.1.0")).unwrap_err().contains("panic = \"abort\""));
    let differing = [
        (module(0, true, "y\n", "0.1.0"), "states id y, and its manifest states x"),
        (module(0, true, "x", "0.2.0"), "states version 0.2.0, and its manifest states 0.1.0"),
        (module(1, true, "x", "0.1.0"), "states ABI minor version 1, and its manifest states 0"),
    ];
    for (module, text) in differing {
        assert_eq!(verdict(module).unwrap_err(), text);
    }
}
