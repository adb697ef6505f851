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
    /// Runs and time of each op, by `name@version`.
    pub ops: BTreeMap<String, (u64, Duration)>,
    /// Bytes of the matrices that ops used, each once for every use; of a table only the rows that were taken.
    pub weight_bytes: u64,
}

impl Profile {
    pub(crate) fn add(&mut self, op: &str, time: Duration, bytes: u64) {
        let entry = self.ops.entry(op.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += time;
        self.weight_bytes += bytes;
    }

    /// Adds what another one has.
    pub(crate) fn join(&mut self, other: &Self) {
        for (op, (runs, time)) in &other.ops {
            let entry = self.ops.entry(op.clone()).or_default();
            entry.0 += runs;
            entry.1 += *time;
        }
        self.weight_bytes += other.weight_bytes;
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
