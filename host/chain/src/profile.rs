//! Where the time of steps goes, and how many bytes of weights they use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coli_plugin_api::program::{GroupId, WeightId};
use coli_shaders::contract::{ExpertMatrix, WeightStore};
use coli_shaders::formats::WeightView;

/// Time by kind of op, and bytes of weights.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Each op, by `name@version`.
    pub ops: BTreeMap<String, OpTime>,
    /// Bytes a second that the device reads and writes in a plain copy, where one ran.
    pub bandwidth: Option<f64>,
}

/// What an op took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpTime {
    /// Runs.
    pub runs: u64,
    /// Time of all of them.
    pub time: Duration,
    /// Bytes of the matrices that it used, each once for every use; a table's rows are not counted.
    pub bytes: u64,
}

impl OpTime {
    fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.time += other.time;
        self.bytes += other.bytes;
    }
}

impl Profile {
    pub(crate) fn add(&mut self, op: &str, time: Duration, bytes: u64) {
        self.ops.entry(op.to_owned()).or_default().add(OpTime { runs: 1, time, bytes });
    }

    /// Bytes of the matrices that ops used.
    pub fn weight_bytes(&self) -> u64 {
        self.ops.values().map(|op| op.bytes).sum()
    }

    /// Adds what another one has.
    pub(crate) fn join(&mut self, other: &Self) {
        other.ops.iter().for_each(|(op, time)| self.ops.entry(op.clone()).or_default().add(*time));
        self.bandwidth = self.bandwidth.or(other.bandwidth);
    }
}

/// A store that counts the bytes of what is taken from it.
pub(crate) struct Counted<'a> {
    store: &'a dyn WeightStore,
    bytes: AtomicU64,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(store: &'a dyn WeightStore) -> Self {
        Self { store, bytes: AtomicU64::new(0) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn count<'v>(&self, view: Option<WeightView<'v>>) -> Option<WeightView<'v>> {
        let bytes = view.as_ref().map_or(0, WeightView::bytes);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        view
    }
}

impl WeightStore for Counted<'_> {
    fn weight(&self, id: WeightId) -> Option<WeightView<'_>> {
        self.count(self.store.weight(id))
    }

    fn expert(&self, group: GroupId, layer: u32, expert: u32, matrix: ExpertMatrix) -> Option<WeightView<'_>> {
        self.count(self.store.expert(group, layer, expert, matrix))
    }
}
