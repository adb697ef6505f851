//! The plugin of the first release, as it was built then: it loads and is right. See `first_release/README.md`.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs::File;
use std::io::Read as _;

use coli_test_cli::says;
use coli_test_common::built;
use coli_test_plugins::folder::{Folder, Stated};
use coli_test_plugins::model::Model;
use flate2::read::GzDecoder;

#[test]
fn it_loads_and_gives_the_reference_logits() {
    let packed = File::open(built::root().join("tests/plugins/first_release/libcoli_hostile.so.gz")).unwrap();
    assert!(packed.metadata().is_ok_and(|facts| facts.len() <= 300_000), "it is kept in every checkout");
    let mut library = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut library).unwrap();
    let folder = Folder::new();
    folder.put_bytes(&Stated { abi: "0.0", ..Stated::HOSTILE }, &library);
    let finished = folder.coli(&["plugins"]).finish().succeeded();
    says(finished.stdout.lines().find(|line| line.starts_with("hostile ")).unwrap_or_default(), &[" accepted "]);
    Model::sound().evaluate(&folder);
}
