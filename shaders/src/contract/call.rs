//! What a CPU twin is given: rows, operands, weights and states of one op of one step.

use coli_plugin_api::program::{GroupId, WeightId};

use super::Team;
use crate::fast::{self, Level};
use crate::formats::WeightView;

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowAt {
    /// The conversation's slot.
    pub conv: u32,
    /// Its position in the conversation's cache.
    pub pos: u32,
    /// The row of the step that it is, or was taken from.
    pub step_row: u32,
}

/// How a token is chosen from logits. Per conversation, so that its text does not depend on what runs beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 is greedy.
    pub temperature: f32,
    /// Keeps the so many best; 0 keeps all.
    pub top_k: u32,
    /// Keeps the best tokens whose probabilities reach this sum, at least one; 1 keeps all.
    pub top_p: f32,
    /// Of these, keeps the tokens that are at least this share as probable as the best one; 0 keeps all.
    pub min_p: f32,
    /// The generator's key.
    pub seed: u64,
}

impl Sampling {
    /// The highest score, the lowest id among equals.
    pub const GREEDY: Self = Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
}

/// One of an expert's matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpertMatrix {
    /// `[hidden, width]`.
    Gate,
    /// `[hidden, width]`.
    Up,
    /// `[width, hidden]`.
    Down,
}

/// Where an executor finds weights. Shapes are those of the description: whoever fills a store checks them.
pub trait WeightStore: Send + Sync {
    /// A weight of the description.
    fn weight(&self, id: WeightId) -> Option<WeightView<'_>>;
    /// A matrix of an expert; `layer` counts within the group.
    fn expert(&self, group: GroupId, layer: u32, expert: u32, matrix: ExpertMatrix) -> Option<WeightView<'_>>;
}

/// Numbers of rows as a state stores them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stored<'a> {
    /// As f32.
    Whole(&'a [f32]),
    /// As binary16, in fast mode, where the description allows it.
    Half(&'a [u16]),
}

/// Access to an op's states; `state` counts its state operands.
pub trait StateAccess {
    /// The row that a conversation has at `index` (position divided by the stride), `None` where there is none. Of a state that keeps the
    /// last n, these are the rows of the last n positions before the step's first row, and those of the step.
    fn row(&self, state: usize, conv: u32, index: u32) -> Option<&[f32]>;
    /// The same for writing, for rows of the step; the executor has made room before it.
    fn row_mut(&mut self, state: usize, conv: u32, index: u32) -> Option<&mut [f32]>;
    /// Whether [`Self::row`] would give a row, in whatever form it is stored.
    fn has(&self, state: usize, conv: u32, index: u32) -> bool {
        self.row(state, conv, index).is_some()
    }
    /// Rows of a page of a state.
    fn page_rows(&self, state: usize) -> u32 {
        let _ = state;
        1
    }
    /// A page as it is stored: the rows from `page * page_rows` on. Those that [`Self::has`] does not know have any numbers.
    fn page(&self, state: usize, conv: u32, page: u32) -> Option<Stored<'_>> {
        self.row(state, conv, page).map(Stored::Whole)
    }
    /// Writes a part of a row, from column `col0`; `false` where there is no room for it.
    fn put(&mut self, state: usize, conv: u32, index: u32, col0: usize, numbers: &[f32]) -> bool {
        let row = self.row_mut(state, conv, index).and_then(|row| row.get_mut(col0..col0 + numbers.len()));
        row.map(|row| row.copy_from_slice(numbers)).is_some()
    }
    /// The value of an accumulator before the row at `pos`, to be advanced by that row. A step's rows of a conversation ask for it in
    /// order, each once; anything else gives `None`, and so do states without accumulators. What a rewind needs is the executor's business.
    fn accumulator(&mut self, state: usize, conv: u32, pos: u32) -> Option<&mut [f32]> {
        let _ = (state, conv, pos);
        None
    }
}

/// An operand: a column range of a `[rows, stride]` buffer of 4-byte words.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    words: &'a [u32],
    stride: usize,
    col0: usize,
    ncols: usize,
}

impl<'a> Columns<'a> {
    /// Columns `col0..col0 + ncols` of rows of `stride` words.
    pub fn new(words: &'a [u32], stride: usize, col0: usize, ncols: usize) -> Self {
        assert!(col0 + ncols <= stride, "columns {col0}+{ncols} of {stride}");
        Self { words, stride, col0, ncols }
    }

    /// The same from row `row` on.
    pub fn from_row(&self, row: usize) -> Self {
        // An operand whose rows end here has nothing to give and is not asked.
        Self { words: self.words.get(row * self.stride..).unwrap_or_default(), ..*self }
    }

    /// Numbers a row.
    pub fn width(&self) -> usize {
        self.ncols
    }

    /// A row of numbers.
    pub fn row(&self, row: usize) -> &'a [f32] {
        bytemuck::cast_slice(self.words_of(row))
    }

    /// A row of ids.
    pub fn ints(&self, row: usize) -> &'a [i32] {
        bytemuck::cast_slice(self.words_of(row))
    }

    /// The words of the first `rows` rows, the words of a row, the first column and how many: for an op behind the border.
    pub fn parts(&self, rows: usize) -> (&'a [u32], usize, usize, usize) {
        (&self.words[..rows * self.stride], self.stride, self.col0, self.ncols)
    }

    fn words_of(&self, row: usize) -> &'a [u32] {
        &self.words[row * self.stride + self.col0..][..self.ncols]
    }
}

/// An output: a whole `[rows, width]` buffer of 4-byte words.
#[derive(Debug)]
pub struct ColumnsMut<'a> {
    words: &'a mut [u32],
    width: usize,
}

impl<'a> ColumnsMut<'a> {
    /// Rows of `width` words.
    pub fn new(words: &'a mut [u32], width: usize) -> Self {
        Self { words, width }
    }

    /// Numbers a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The words of the first `rows` rows, for an op behind the border.
    pub fn words(&mut self, rows: usize) -> &mut [u32] {
        &mut self.words[..rows * self.width]
    }

    /// A row of numbers.
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.words[row * self.width..][..self.width])
    }

    /// A row of ids.
    pub fn ints(&mut self, row: usize) -> &mut [i32] {
        bytemuck::cast_slice_mut(&mut self.words[row * self.width..][..self.width])
    }
}

/// One op of one step, as its CPU twin sees it. All shapes were checked when the program was validated.
pub struct CpuCall<'a> {
    /// The rows of the op's outputs, or of its inputs where it has none.
    pub rows: &'a [RowAt],
    /// Operands, in order.
    pub ins: &'a [Columns<'a>],
    /// Outputs, in order.
    pub outs: &'a mut [ColumnsMut<'a>],
    /// Ids of the op's weights, in order.
    pub weights: &'a [WeightId],
    /// Ids of the op's expert groups, in order.
    pub groups: &'a [GroupId],
    /// Where weights are.
    pub store: &'a dyn WeightStore,
    /// The op's states.
    pub states: &'a mut dyn StateAccess,
    /// How a token is chosen, for each row; only rows whose outputs are wanted have it.
    pub sampling: &'a [Sampling],
    /// Memory that ops may use and leave dirty.
    pub scratch: &'a mut Vec<f32>,
    /// Threads that may help.
    pub team: &'a dyn Team,
    /// What fast mode works with; `None` in exact mode.
    pub fast: Option<&'a Fast<'a>>,
}

/// For what purpose rows run. In fast mode a row's bits depend on it, and so never on how many rows run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowClass {
    /// Rows that are decoded, verified or drafted.
    Step,
    /// Rows of a prompt.
    #[default]
    Prompt,
}

/// What fast mode works with.
pub struct Fast<'a> {
    /// The instructions that kernels may use.
    pub level: Level,
    /// Of the op's rows.
    pub class: RowClass,
    /// Memory of its kernels.
    pub scratch: &'a fast::Scratch,
}

impl<'a> CpuCall<'a> {
    /// Weight `index` of the op.
    ///
    /// # Panics
    /// When the store lacks a weight of the description, which whoever filled it has ruled out.
    pub fn weight(&self, index: usize) -> WeightView<'a> {
        let id = self.weights[index];
        self.store.weight(id).unwrap_or_else(|| panic!("weight {} is not in the store", id.0))
    }

    /// A matrix of an expert of the op's group `index`, `None` where there is no such expert.
    pub fn expert(&self, index: usize, layer: u32, expert: u32, matrix: ExpertMatrix) -> Option<WeightView<'a>> {
        self.store.expert(self.groups[index], layer, expert, matrix)
    }
}
