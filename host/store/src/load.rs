//! Carries out a plan: one allocation, filled in the order of the files.

use coli_base::{Error, Result};
use coli_plugin_api::describe::Description;
use coli_plugin_api::program::{GroupId, WeightId};
use coli_shaders::contract::{ExpertMatrix, WeightStore};
use coli_shaders::formats::WeightView;

use crate::checkpoint::Checkpoint;
use crate::memory::AlignedBytes;
use crate::plan::{Layout, Matrix, Plan, Read};

/// A large tensor is read in pieces, so that progress moves.
const PIECE: usize = 16 << 20;

/// Every weight that a description names, in the formats in which they are stored.
#[derive(Debug)]
pub struct Weights {
    memory: AlignedBytes,
    layout: Layout,
}

/// Hears of bytes read so far and of all of them, after each piece. Its error ends the reading.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> Result<()>;

/// Checks the description against the checkpoint and reads its weights.
pub fn load(checkpoint: &Checkpoint, description: &Description, progress: Progress<'_>) -> Result<Weights> {
    Plan::new(checkpoint, description)?.load(progress)
}

impl Plan<'_> {
    /// Reads the weights.
    pub fn load(self, progress: Progress<'_>) -> Result<Weights> {
        let mut memory = AlignedBytes::zeroed(self.bytes())?;
        let total = self.reads.iter().map(|read| read.span.bytes * read.span.times).sum();
        let mut done = 0;
        progress(done, total)?;
        for read in &self.reads {
            // The whole memory is in this process's address space, so its offsets and lengths are usizes.
            let room = &mut memory.bytes_mut()[read.at as usize..][..(read.span.bytes * read.span.times) as usize];
            fill(self.checkpoint, read, room, &mut |bytes| {
                done += bytes;
                progress(done, total)
            })?;
        }
        Ok(Weights { memory, layout: self.layout })
    }
}

fn fill(checkpoint: &Checkpoint, read: &Read, room: &mut [u8], advance: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
    let place = read.span.place(checkpoint);
    let file = checkpoint.file_at(place);
    let once = place.bytes as usize;
    let mut offset = place.offset;
    for piece in room[..once].chunks_mut(PIECE) {
        file.read_at(piece, offset).map_err(|error| {
            let name = &checkpoint.tensors()[read.span.tensor].name;
            Error::run(format!("`{}`: reading tensor `{name}`: {error}", file.path.display()))
        })?;
        offset += piece.len() as u64;
        advance(piece.len() as u64)?;
    }
    if read.span.times > 1 {
        (once..room.len()).step_by(once).for_each(|at| room.copy_within(..once, at));
        advance((room.len() - once) as u64)?;
    }
    Ok(())
}

impl Weights {
    /// The memory that they take.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes().len() as u64
    }

    fn view(&self, matrix: &Matrix) -> Option<WeightView<'_>> {
        let bytes = &self.memory.bytes()[matrix.at as usize..][..matrix.bytes as usize];
        WeightView::new(matrix.format, matrix.rows as usize, matrix.cols as usize, bytes)
    }
}

impl WeightStore for Weights {
    fn weight(&self, id: WeightId) -> Option<WeightView<'_>> {
        self.view(self.layout.weights.get(id.0 as usize)?.as_ref()?)
    }

    fn expert(&self, group: GroupId, layer: u32, expert: u32, matrix: ExpertMatrix) -> Option<WeightView<'_>> {
        let group = self.layout.groups.get(group.0 as usize)?;
        if expert >= group.count {
            return None;
        }
        let which = match matrix {
            ExpertMatrix::Gate => 0,
            ExpertMatrix::Up => 1,
            ExpertMatrix::Down => 2,
        };
        let index = (layer as usize).checked_mul(group.count as usize)?.checked_add(expert as usize)?.checked_mul(3)? + which;
        self.view(group.matrices.get(index)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open;
    use crate::testing::{Stored, describe, experts, model, save};
    use coli_plugin_api::describe::{ExpertView, View};
    use coli_shaders::formats::Format;
    use std::path::Path;

    fn read(dir: &Path, description: &Description) -> Weights {
        load(&open(dir).unwrap(), description, &mut |_, _| Ok(())).unwrap()
    }

    /// The numbers of one weight, cut from `m` = 0..12 as [4, 3], `n` = 0..6 as [2, 3] and `v` = 0..4.
    fn numbers(shape: &[u32], view: View) -> Vec<f32> {
        let dir = model(&[Stored::f32("m", &[4, 3]), Stored::f32("n", &[2, 3]), Stored::f32("v", &[4]), Stored::f32("c", &[2, 1, 3])]);
        read(dir.path(), &describe(shape, view)).weight(WeightId(0)).unwrap().decode()
    }

    fn rows(of: View, start: u32, count: u32, step: u32) -> View {
        View::Rows { of: Box::new(of), start, count, step }
    }

    fn both() -> View {
        View::Concat(vec![View::tensor("m"), View::tensor("n")])
    }

    #[test]
    fn views_select_the_rows_that_they_say() {
        assert_eq!(numbers(&[2, 3], View::tensor("n")), [0., 1., 2., 3., 4., 5.]);
        assert_eq!(numbers(&[2, 3], View::tensor("c")), [0., 1., 2., 3., 4., 5.]);
        assert_eq!(numbers(&[4], View::tensor("v")), [0., 1., 2., 3.]);
        assert_eq!(numbers(&[1, 4], View::tensor("v")), [0., 1., 2., 3.]);
        assert_eq!(numbers(&[2, 3], rows(View::tensor("m"), 1, 2, 1)), [3., 4., 5., 6., 7., 8.]);
        assert_eq!(numbers(&[2, 3], rows(View::tensor("m"), 1, 2, 2)), [3., 4., 5., 9., 10., 11.]);
        assert_eq!(numbers(&[3], rows(View::tensor("m"), 3, 1, 1)), [9., 10., 11.]);
        assert_eq!(numbers(&[2], rows(View::tensor("v"), 1, 2, 2)), [1., 3.]);
        assert_eq!(numbers(&[6, 3], both()), (0..12).chain(0..6).map(|i| i as f32).collect::<Vec<_>>());
        assert_eq!(numbers(&[8], View::Concat(vec![View::tensor("v"), View::tensor("v")])), [0., 1., 2., 3., 0., 1., 2., 3.]);
        // Rows of a concatenation may span its parts.
        assert_eq!(numbers(&[2, 3], rows(both(), 3, 2, 1)), [9., 10., 11., 0., 1., 2.]);
        assert_eq!(numbers(&[3, 3], rows(both(), 1, 3, 2)), [3., 4., 5., 9., 10., 11., 3., 4., 5.]);
        // The first two rows of every three, as of heads that hold q beside a gate.
        assert_eq!(numbers(&[4, 3], both().blocks(0, 2, 2, 3)), [0., 1., 2., 3., 4., 5., 9., 10., 11., 0., 1., 2.]);
        assert_eq!(numbers(&[3, 3], both().blocks(1, 3, 1, 1)), [3., 4., 5., 6., 7., 8., 9., 10., 11.]);
        assert_eq!(numbers(&[6], View::tensor("n").flat()), [0., 1., 2., 3., 4., 5.]);
        assert_eq!(numbers(&[2], rows(View::tensor("n").flat(), 1, 2, 3)), [1., 4.]);
        assert_eq!(numbers(&[1, 3], rows(rows(View::tensor("m"), 1, 3, 1), 2, 1, 1)), [9., 10., 11.]);
    }

    #[test]
    fn a_whole_vector_is_one_row() {
        let dir = model(&[Stored::bf16("v", &[5])]);
        let weights = read(dir.path(), &describe(&[5], View::tensor("v")));
        let view = weights.weight(WeightId(0)).unwrap();
        assert_eq!((view.rows(), view.cols(), view.format()), (1, 5, Format::BF16));
        assert_eq!((weights.bytes(), weights.weight(WeightId(1)).is_none()), (10, true));
    }

    #[test]
    fn fused_experts_are_the_rows_of_theirs() {
        // Two experts of width 2 and hidden 3: gate rows, then up rows.
        let dir = model(&[Stored::f32("gate_up", &[2, 6, 2]), Stored::f32("down", &[2, 2, 3])]);
        let fused = |tensor: &str, start: u32| ExpertView::Fused { tensor: tensor.into(), start };
        let weights = read(dir.path(), &experts(2, 2, 3, fused("gate_up", 0), fused("gate_up", 3), fused("down", 0)));
        let get = |layer, expert, matrix| weights.expert(GroupId(0), layer, expert, matrix);
        let from = |start: u32| (start..start + 6).map(|i| i as f32).collect::<Vec<_>>();
        for expert in 0..2 {
            assert_eq!(get(0, expert, ExpertMatrix::Gate).unwrap().decode(), from(12 * expert));
            assert_eq!(get(0, expert, ExpertMatrix::Up).unwrap().decode(), from(12 * expert + 6));
            assert_eq!(get(0, expert, ExpertMatrix::Down).unwrap().decode(), from(6 * expert));
        }
        let down = get(0, 0, ExpertMatrix::Down).unwrap();
        assert_eq!((down.rows(), down.cols()), (2, 3));
        assert!(get(0, 2, ExpertMatrix::Gate).is_none());
        assert!(get(1, 0, ExpertMatrix::Gate).is_none());
        assert!(get(u32::MAX, 0, ExpertMatrix::Gate).is_none());
        assert!(weights.expert(GroupId(1), 0, 0, ExpertMatrix::Gate).is_none());
    }

    #[test]
    fn experts_may_have_a_tensor_each_in_any_file() {
        let dir = model(&[]);
        std::fs::remove_file(dir.path().join("model.safetensors")).unwrap();
        let per = |what: &str| ExpertView::PerExpert(format!("e.{{expert}}.{what}"));
        save(
            &dir.path().join("0.safetensors"),
            &[Stored::bf16("e.1.g", &[3, 2]), Stored::f32("e.0.d", &[2, 3]), Stored::f32("e.0.u", &[3, 2])],
        );
        save(
            &dir.path().join("1.safetensors"),
            &[Stored::f32("e.0.g", &[3, 2]), Stored::f32("e.1.u", &[3, 2]), Stored::f32("e.1.d", &[2, 3])],
        );
        let weights = read(dir.path(), &experts(2, 2, 3, per("g"), per("u"), per("d")));
        let gates = [0, 1].map(|expert| weights.expert(GroupId(0), 0, expert, ExpertMatrix::Gate).unwrap());
        assert_eq!(gates.map(|gate| gate.format()), [Format::F32, Format::BF16]);
        assert_eq!(gates.map(|gate| gate.decode()), [[0., 1., 2., 3., 4., 5.]; 2]);
    }

    #[test]
    fn progress_reaches_the_total() {
        let dir = model(&[Stored::f32("m", &[4, 3]), Stored::f32("v", &[4])]);
        let mut description = describe(&[4, 3], View::tensor("m"));
        description.vector("v", 4, View::tensor("v"));
        let mut seen = Vec::new();
        load(&open(dir.path()).unwrap(), &description, &mut |done, total| {
            seen.push((done, total));
            Ok(())
        })
        .unwrap();
        assert_eq!((seen[0], seen.last()), ((0, 64), Some(&(64, 64))));
        assert!(seen.is_sorted());
    }

    #[test]
    fn an_error_of_the_progress_ends_the_reading() {
        let dir = model(&[Stored::f32("m", &[4, 3]), Stored::f32("v", &[4])]);
        let mut description = describe(&[4, 3], View::tensor("m"));
        description.vector("v", 4, View::tensor("v"));
        for after in 0..3 {
            let mut calls = 0;
            let error = load(&open(dir.path()).unwrap(), &description, &mut |_, _| {
                calls += 1;
                if calls > after { Err(Error::run("enough")) } else { Ok(()) }
            });
            assert_eq!((error.unwrap_err().text.as_str(), calls), ("enough", after + 1));
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let dir = model(&[Stored::f32("m", &[4, 3])]);
        let checkpoint = open(dir.path()).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(dir.path().join("model.safetensors")).unwrap();
        file.set_len(100).unwrap();
        let error = load(&checkpoint, &describe(&[4, 3], View::tensor("m")), &mut |_, _| Ok(())).unwrap_err();
        assert_eq!(error.kind, coli_base::Kind::Run);
        assert!(error.text.contains("model.safetensors") && error.text.contains("`m`"), "{error}");
    }

    #[test]
    fn the_demo_model_takes_its_own_bytes() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/olmoe/demo");
        let checkpoint = open(&dir).unwrap();
        assert_eq!((checkpoint.model_type().unwrap(), checkpoint.tensors().len()), ("olmoe", 345));
        let mut description = Description::default();
        for tensor in checkpoint.tensors() {
            let shape: Vec<u32> = tensor.shape.iter().map(|&dim| dim as u32).collect();
            match shape[..] {
                [n] => drop(description.vector(&tensor.name, n, View::tensor(&tensor.name))),
                [rows, cols] => drop(description.matrix(&tensor.name, rows, cols, View::tensor(&tensor.name))),
                _ => panic!("{shape:?}"),
            }
        }
        let stored: u64 = checkpoint.tensors().iter().map(|tensor| tensor.bytes).sum();
        let weights = load(&checkpoint, &description, &mut |_, _| Ok(())).unwrap();
        assert!(weights.bytes() >= stored && weights.bytes() - stored < stored / 500, "{} of {stored}", weights.bytes());
        for (id, tensor) in checkpoint.tensors().iter().enumerate() {
            let view = weights.weight(WeightId(id as u32)).unwrap();
            let mut first = vec![0.0; view.cols()];
            view.decode_row(0, &mut first);
            assert!(first.iter().all(|x| x.is_finite()), "{}", tensor.name);
        }
    }
}
