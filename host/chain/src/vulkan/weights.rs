//! Weights on a device: each is uploaded when a plan first names it, in the form that the plan names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use coli_base::{Error, Result};
use coli_plugin_api::describe::Description;
use coli_plugin_api::program::{GroupId, WeightId};
use coli_shaders::contract::{ExpertMatrix, WeightStore};
use coli_shaders::device::{ExpertShape, PlanFacts, WeightShape};
use coli_shaders::formats::WeightView;
use coli_vk::memory::Pool;
use coli_vk::{Buffer, Device, Piece};

/// The host's weights, and those that are on a device.
pub struct DeviceWeights {
    device: Device,
    store: Arc<dyn WeightStore>,
    /// Experts of each group.
    counts: Vec<u32>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    vectors: HashMap<WeightId, Buffer>,
    matrices: HashMap<WeightId, Buffer>,
    experts: HashMap<(GroupId, u32), Experts>,
    shapes: HashMap<(GroupId, u32), Option<ExpertShape>>,
}

/// A layer's experts.
struct Experts {
    table: Buffer,
    /// What the table's addresses point into.
    _matrices: Vec<Buffer>,
}

const MATRICES: [ExpertMatrix; 3] = [ExpertMatrix::Gate, ExpertMatrix::Up, ExpertMatrix::Down];
/// Matrices begin at multiples of this.
const ALIGN: u64 = 256;

impl DeviceWeights {
    /// The weights of a description, on a device.
    pub fn new(device: Device, store: Arc<dyn WeightStore>, description: &Description) -> Self {
        let counts = description.groups.iter().map(|group| group.count).collect();
        Self { device, store, counts, known: Mutex::default() }
    }

    pub(super) fn shape(&self, id: WeightId) -> Result<WeightShape> {
        Ok(shape(&self.view(id)?))
    }

    fn view(&self, id: WeightId) -> Result<WeightView<'_>> {
        self.store.weight(id).ok_or_else(|| Error::run(format!("weight {} is not in the store", id.0)))
    }

    /// Bytes of a weight as it is stored.
    pub(super) fn bytes(&self, id: WeightId) -> Option<u64> {
        self.store.weight(id).map(|view| view.bytes() as u64)
    }

    /// How many experts a layer has, and the bytes of one.
    pub(super) fn expert_bytes(&self, group: GroupId, layer: u32) -> Option<(u64, u64)> {
        let matrices = MATRICES.map(|which| self.store.expert(group, layer, 0, which));
        let bytes = matrices.into_iter().map(|view| view.map(|view| view.bytes() as u64)).sum::<Option<u64>>()?;
        Some((self.count(group).into(), bytes))
    }

    /// A weight as f32 numbers.
    pub(super) fn vector(&self, id: WeightId) -> Result<Buffer> {
        if let Some(known) = self.known().vectors.get(&id) {
            return Ok(known.clone());
        }
        let numbers = self.view(id)?.decode();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let made = self.uploaded(Pool::Weights, &bytes)?;
        self.known().vectors.insert(id, made.clone());
        Ok(made)
    }

    /// A weight as it is stored.
    pub(super) fn matrix(&self, id: WeightId) -> Result<Buffer> {
        if let Some(known) = self.known().matrices.get(&id) {
            return Ok(known.clone());
        }
        let made = self.uploaded(Pool::Weights, self.view(id)?.stored())?;
        self.known().matrices.insert(id, made.clone());
        Ok(made)
    }

    /// The table of a layer's experts, whose matrices are uploaded with it.
    pub(super) fn experts(&self, group: GroupId, layer: u32) -> Result<Buffer> {
        if let Some(known) = self.known().experts.get(&(group, layer)) {
            return Ok(known.table.clone());
        }
        let experts = self.upload_experts(group, layer)?;
        let table = experts.table.clone();
        self.known().experts.insert((group, layer), experts);
        Ok(table)
    }

    fn upload_experts(&self, group: GroupId, layer: u32) -> Result<Experts> {
        let (mut table, mut matrices) = (vec![], vec![]);
        for expert in 0..self.count(group) {
            let views = MATRICES.map(|which| self.store.expert(group, layer, expert, which));
            let [Some(gate), Some(up), Some(down)] = views else {
                return Err(Error::run(format!("expert {expert} of layer {layer} of group {} is not in the store", group.0)));
            };
            let parts = [gate.stored(), up.stored(), down.stored()];
            let lens = parts.map(|part| (part.len() as u64).next_multiple_of(ALIGN));
            let to = self.device.buffer(Pool::Experts, lens.iter().sum::<u64>().max(ALIGN))?;
            let starts = [0, lens[0], lens[0] + lens[1]];
            let pieces: Vec<Piece<'_>> = parts.iter().zip(starts).map(|(from, at)| Piece { to: &to, at, from }).collect();
            self.device.upload(&pieces)?;
            table.extend(starts.iter().flat_map(|start| (to.address() + start).to_le_bytes()));
            matrices.push(to);
        }
        Ok(Experts { table: self.uploaded(Pool::Experts, &table)?, _matrices: matrices })
    }

    fn count(&self, group: GroupId) -> u32 {
        self.counts.get(group.0 as usize).copied().unwrap_or(0)
    }

    fn uploaded(&self, pool: Pool, bytes: &[u8]) -> Result<Buffer> {
        // Kernels read whole words.
        let to = self.device.buffer(pool, (bytes.len() as u64).next_multiple_of(4).max(4))?;
        self.device.upload(&[Piece { to: &to, at: 0, from: bytes }])?;
        Ok(to)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // What is known is whole whatever its holder did.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expert_shape(&self, group: GroupId, layer: u32) -> Option<ExpertShape> {
        let of = |expert: u32| {
            let [gate, up, down] = MATRICES.map(|which| self.store.expert(group, layer, expert, which).map(|view| shape(&view)));
            Some([gate?, up?, down?])
        };
        let first = of(0)?;
        let [gate, up, down] = first;
        let count = self.count(group);
        (1..count).all(|expert| of(expert) == Some(first)).then_some(ExpertShape { count, gate, up, down })
    }
}

impl PlanFacts for DeviceWeights {
    fn experts(&self, group: GroupId, layer: u32) -> Option<ExpertShape> {
        if let Some(known) = self.known().shapes.get(&(group, layer)) {
            return *known;
        }
        let shape = self.expert_shape(group, layer);
        self.known().shapes.insert((group, layer), shape);
        shape
    }
}

fn shape(view: &WeightView<'_>) -> WeightShape {
    WeightShape { format: view.format(), rows: view.rows() as u32, cols: view.cols() as u32 }
}
