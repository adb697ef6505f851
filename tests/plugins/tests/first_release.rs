//! The plugin of the first release, as it was built then: it loads and is right. See `first_release/README.md`.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use coli_test_cli::says;
use coli_test_common::built;
use coli_test_plugins::folder::{Folder, Stated};
use coli_test_plugins::model::Model;

#[test]
fn it_loads_and_gives_the_reference_logits() {
    let library = built::root().join("tests/plugins/first_release/libcoli_hostile.so");
    let folder = Folder::new();
    let copy = folder.put(&Stated { abi: "0.0", ..Stated::HOSTILE }, &library);
    assert!(copy.metadata().is_ok_and(|facts| facts.len() <= 1_000_000), "it is kept in every checkout");
    let finished = folder.coli(&["plugins"]).finish().succeeded();
    says(finished.stdout.lines().find(|line| line.starts_with("hostile ")).unwrap_or_default(), &[" accepted "]);
    Model::sound().evaluate(&folder);
}
