//! Any bytes as a plugin's description, with the demo's recordings: a program and a plan of reads from the demo's folder, or refused.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use coli_chain::program::OpTable;
use coli_fuzz::{DEMO, Recorded, build, demo};
use coli_plugin_api::describe::{Description, SegmentName};
use coli_store::{Checkpoint, Plan};
use libfuzzer_sys::fuzz_target;

static OPS: LazyLock<OpTable> = LazyLock::new(OpTable::library);
static MODEL: LazyLock<Recorded> = LazyLock::new(demo);
static FOLDER: LazyLock<Checkpoint> = LazyLock::new(|| coli_store::open(Path::new(DEMO)).expect("the demo is a model"));

fuzz_target!(|bytes: &[u8]| {
    let Ok(description) = serde_json::from_slice::<Description>(bytes) else { return };
    let text = serde_json::to_string(&description).expect("a description is JSON");
    assert_eq!(serde_json::from_str::<Description>(&text).expect("a description survives the border"), description);
    let recordings: Vec<_> = description.segments.iter().map(|name| (*name, recording(*name).to_vec())).collect();
    if build(&description, &recordings, &OPS) {
        let _ = Plan::new(&FOLDER, &description).map(|plan| plan.bytes());
    }
});

/// The demo's recording of a segment, and of its first layer for every layer.
fn recording(name: SegmentName) -> &'static [u8] {
    let known = match name {
        SegmentName::Embed | SegmentName::Head => name,
        _ => SegmentName::Layer(0),
    };
    let found = MODEL.recordings.iter().find(|(segment, _)| *segment == known);
    found.map_or(&[], |(_, bytes)| bytes)
}
