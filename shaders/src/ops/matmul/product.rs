//! Dispatches of the kernels that multiply rows by a stored matrix, for every op that does.

use crate::contract::RowClass;
use crate::device::{Arg, DeviceShape, Dispatch, Extent, Grid, KernelName, KernelText, Per, PlanCall, WeightShape};
use crate::formats::Format;

/// Inner products in the order of exact mode.
pub(crate) const GEMV: KernelText = KernelText { name: "gemv", text: include_str!("gemv.comp"), per: Per::Format };
/// The same down the columns of groups of a matrix.
pub(crate) const GEMV_T: KernelText = KernelText { name: "gemv_t", text: include_str!("gemv_t.comp"), per: Per::Format };
/// Tiles in f32.
pub(crate) const GEMM: KernelText = KernelText { name: "gemm", text: include_str!("gemm.comp"), per: Per::Format };
/// Tiles by a subgroup's matrices of f16.
pub(crate) const GEMM_MATRIX: KernelText =
    KernelText { name: "gemm_matrix", text: include_str!("gemm_matrix.comp"), per: Per::FormatMatrix };

/// Workgroups in y and z, at most.
const MOST_GROUPS: u32 = 65_535;
/// Rows of x that share a decode, at most.
pub(crate) const MOST_ROWS: u32 = 16;
/// Rows of a tile.
pub(crate) const TILE: u32 = 64;
/// Outputs of a tile.
const TILE_OUTS: u32 = 64;
/// Columns that a tile of f16 takes at a time.
const DEPTH: u32 = 32;
/// Invocations of a team of `gemv` in exact mode.
const TEAM: u32 = 8;
/// Columns from which on fast mode has larger teams.
const FAST_COLS: u32 = 256;
/// Words of a format's grid in shared memory, at most.
const GRID_WORDS: u32 = 1024;

/// Which rows of x meet which matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Each row, the matrix.
    Rows,
    /// Each pair of a row and a rank, the matrix of its expert.
    Pairs,
    /// The pairs of an expert, its matrix; there are so many groups of them at most, each of so many pairs at most.
    Groups {
        /// Groups.
        groups: u32,
        /// Pairs of a group.
        per: u32,
    },
}

/// How a gate acts on a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gated {
    /// There is none.
    Not = 0,
    /// y holds it.
    Held = 1,
    /// It is a sum of the same dispatch; only `gemv` can.
    Both = 2,
}

/// The experts that pairs choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Ranks of a row.
    pub ranks: u32,
    /// How many of them read one row of x.
    pub share_x: u32,
    /// Experts that there are.
    pub experts: u32,
    /// Which of an expert's matrices: gate, up, down.
    pub which: u32,
}

/// An operand as kernels take it, in memory of the plan: its address and its stride.
pub(crate) fn scratch(index: usize, stride: u32) -> Vec<Arg> {
    vec![Arg::Scratch(index), Arg::Word(stride)]
}

/// An operand that is not used.
fn nothing() -> Vec<Arg> {
    vec![Arg::Null, Arg::Word(0)]
}

/// `y = f(W x)`, for rows as they are picked.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    /// The shape of W.
    pub matrix: WeightShape,
    /// Rows of W that read the same columns of x; the next ones read the next.
    pub group_outs: u32,
    /// Which rows.
    pub pick: Pick,
    /// Of pairs.
    pub chosen: Chosen,
    /// The function of `matmul`.
    pub act: u32,
    /// The gate.
    pub gated: Gated,
    /// The function of the gate, as `glu` counts them.
    pub glu: u32,
    /// Its limit.
    pub limit: f32,
    /// x.
    pub x: Vec<Arg>,
    /// y.
    pub y: Vec<Arg>,
    /// W, or the table of experts.
    pub w: Arg,
    /// What is added to each sum, if anything.
    pub bias: Option<Arg>,
    /// The experts of each row.
    pub ids: Vec<Arg>,
    /// The weight of each rank of a row, where the ranks are added.
    pub weights: Option<Vec<Arg>>,
    /// What `moe_group` made.
    pub groups: [Arg; 2],
}

impl Product {
    /// `y = W x`.
    pub fn new(matrix: WeightShape, x: Vec<Arg>, y: Vec<Arg>, w: Arg) -> Self {
        Self {
            matrix,
            group_outs: matrix.rows,
            pick: Pick::Rows,
            chosen: Chosen { ranks: 1, share_x: 1, experts: 0, which: 0 },
            act: 0,
            gated: Gated::Not,
            glu: 0,
            limit: 0.0,
            x,
            y,
            w,
            bias: None,
            ids: nothing(),
            weights: None,
            groups: [Arg::Null; 2],
        }
    }

    /// The kernels of the mode and the class: sums of fast mode depend on both, and on nothing else of the call.
    pub fn dispatch(&self, call: &PlanCall<'_>, exact: bool) -> Result<Dispatch, String> {
        let prompt = call.fast && call.class == RowClass::Prompt;
        // Matrix units take binary16, which has not the range of these formats.
        let wide = [Format::F32, Format::BF16].contains(&self.matrix.format);
        match Tile::of(call.device, prompt && !exact && !wide) {
            Some(tile) => self.gemm_matrix(call, tile),
            None if prompt && has_tiles(call.device) => self.gemm(call),
            None => self.gemv(call),
        }
    }

    /// Inner products, by a team of invocations each: in exact mode in the order of the CPU twin.
    pub fn gemv(&self, call: &PlanCall<'_>) -> Result<Dispatch, String> {
        let rows = match self.pick {
            Pick::Rows => call.cap.clamp(1, MOST_ROWS),
            Pick::Pairs => 1,
            Pick::Groups { per, .. } => per,
        };
        let (fast, team) = self.team(call);
        let ranks = self.chosen.ranks;
        let outs = if self.weights.is_some() { summed_outs(team, ranks) } else { (if fast { 128 } else { 64 }) / team };
        let teams = if self.weights.is_some() { outs * ranks } else { outs };
        let invocations = (team * teams).next_multiple_of(32);
        // Up to 8 rows are joined at once: their lanes, or sums of four lanes.
        let joins = invocations * rows.min(8) / if fast { 4 } else { 1 };
        let mut constants = self.constants(invocations)?;
        constants.extend([rows, joins, u32::from(self.weights.is_some()), team, u32::from(fast)]);
        let parts = if self.weights.is_some() { Extent::ROWS } else { self.parts(call, rows)? };
        self.launch(GEMV.name, call, constants, self.matrix.rows.div_ceil(outs), parts)
    }

    /// Whether sums are made as fast mode does, and invocations of a team. It depends on shapes and the class alone, since bits do.
    fn team(&self, call: &PlanCall<'_>) -> (bool, u32) {
        let fast = call.fast && call.class == RowClass::Step && self.matrix.cols >= FAST_COLS;
        // The ranks of a row stand side by side in a workgroup.
        let room = [32, 16].into_iter().find(|team| team * self.chosen.ranks <= 256);
        (fast, room.filter(|_| fast).unwrap_or(TEAM))
    }

    /// Whether the ranks of a row have room in a workgroup of `gemv`.
    pub fn sums_ranks(&self, call: &PlanCall<'_>) -> bool {
        let (team, ranks) = (self.team(call).1, self.chosen.ranks);
        u64::from(team) * u64::from(ranks) <= 256
            && (team * ranks * summed_outs(team, ranks)).next_multiple_of(32) <= call.device.invocations
    }

    /// Down the columns of each group.
    pub fn gemv_t(&self, call: &PlanCall<'_>) -> Result<Dispatch, String> {
        let rows = call.cap.clamp(1, 8);
        let mut constants = self.constants(128)?;
        constants.push(rows);
        let groups = self.matrix.rows / self.group_outs.max(1);
        self.launch(GEMV_T.name, call, constants, self.matrix.cols.div_ceil(16) * groups, self.parts(call, rows)?)
    }

    /// By tiles in f32.
    fn gemm(&self, call: &PlanCall<'_>) -> Result<Dispatch, String> {
        self.launch(GEMM.name, call, self.constants(256)?, self.tiles(), self.parts(call, TILE)?)
    }

    /// By tiles in f16.
    fn gemm_matrix(&self, call: &PlanCall<'_>, tile: Tile) -> Result<Dispatch, String> {
        let mut constants = self.constants(tile.invocations)?;
        let (m, n, k) = tile.matrix;
        constants.extend([m, n, k, call.device.subgroup, TILE, TILE_OUTS, DEPTH, tile.along_rows, tile.along_outs]);
        self.launch(GEMM_MATRIX.name, call, constants, self.tiles(), self.parts(call, TILE)?)
    }

    /// Tiles along the outputs: they do not reach over groups.
    fn tiles(&self) -> u32 {
        let outs = self.group_outs.max(1);
        outs.div_ceil(TILE_OUTS) * (self.matrix.rows / outs)
    }

    /// Workgroups for the rows, where each takes `per` of them.
    fn parts(&self, call: &PlanCall<'_>, per: u32) -> Result<Extent, String> {
        let (extent, count) = match self.pick {
            Pick::Rows => (Extent::Rows { per, times: 1 }, u64::from(call.cap.div_ceil(per))),
            Pick::Pairs => {
                let times = self.chosen.ranks;
                (Extent::Rows { per: 1, times }, u64::from(call.cap) * u64::from(times))
            }
            Pick::Groups { groups, .. } => (Extent::Fixed(groups.max(1)), u64::from(groups)),
        };
        if count > u64::from(MOST_GROUPS) {
            return Err(format!("{count} groups of rows, of which a grid has {MOST_GROUPS} at most"));
        }
        Ok(extent)
    }

    /// Constants that all kernels have.
    fn constants(&self, invocations: u32) -> Result<Vec<u32>, String> {
        let WeightShape { format, rows, cols } = self.matrix;
        let bytes = |bytes: Option<usize>| {
            let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
            bytes.ok_or_else(|| format!("rows of {cols} columns of {} have no size", format.name()))
        };
        let (row_bytes, scale_bytes) = (bytes(format.row_bytes(cols as usize))?, bytes(format.scale_bytes(cols as usize))?);
        let pick = match self.pick {
            Pick::Rows => 0,
            Pick::Pairs => 1,
            Pick::Groups { .. } => 2,
        };
        let Chosen { ranks, share_x, experts, which } = self.chosen;
        let of_matrix = [cols, rows, row_bytes, scale_bytes, format.scale_rows() as u32, self.group_outs.max(1)];
        let of_sums = [u32::from(self.bias.is_some()), self.act, self.gated as u32, self.glu];
        let rest = [pick, ranks, share_x, experts, which];
        Ok([invocations].into_iter().chain(of_matrix).chain(rest).chain(of_sums).collect())
    }

    fn launch(
        &self,
        name: &'static str,
        call: &PlanCall<'_>,
        constants: Vec<u32>,
        along_outs: u32,
        parts: Extent,
    ) -> Result<Dispatch, String> {
        let kernel = KernelName { name, format: Some(self.matrix.format) };
        let mut args = [self.x.as_slice(), &self.y, &[self.w, self.bias.unwrap_or(Arg::Null)], &self.ids].concat();
        args.extend(self.weights.clone().unwrap_or_else(nothing));
        args.extend(self.groups);
        args.push(Arg::Float(self.limit));
        Ok(Dispatch { kernel, constants, args, grid: grid(along_outs, parts, call.device)? })
    }
}

/// A grid of so many workgroups along the outputs, folded into z where x has no room for them.
fn grid(along_outs: u32, parts: Extent, device: &DeviceShape) -> Result<Grid, String> {
    let (wide, most) = (along_outs.max(1), device.groups_x.max(1));
    let folds = wide.div_ceil(most);
    if folds > MOST_GROUPS {
        return Err(format!("{wide} groups of outputs, more than a grid has"));
    }
    Ok([Extent::Fixed(wide.min(most)), parts, Extent::Fixed(folds)])
}

/// Whether the device runs tiles in f32.
fn has_tiles(device: &DeviceShape) -> bool {
    device.invocations >= 256
}

/// How a workgroup's tile is shared out among its subgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tile {
    matrix: (u32, u32, u32),
    invocations: u32,
    along_rows: u32,
    along_outs: u32,
}

impl Tile {
    /// `None` where it is not wanted, or the device cannot.
    fn of(device: &DeviceShape, wanted: bool) -> Option<Self> {
        let (m, n, k) = device.matrix.filter(|_| wanted)?;
        let subgroup = device.subgroup.max(1);
        let invocations = 128.max(4 * subgroup);
        let subgroups = invocations / subgroup;
        // As square as can be, with more of them along the outputs.
        let along_rows = 1 << (subgroups.max(1).ilog2() / 2);
        let along_outs = subgroups / along_rows;
        let divides = |part: u32, whole: u32| part > 0 && whole.is_multiple_of(part);
        let fits = divides(subgroup, invocations)
            && divides(along_rows * m, TILE)
            && divides(along_outs * n, TILE_OUTS)
            && divides(k, DEPTH)
            && divides(4, k);
        let vectors = (TILE + TILE_OUTS) * (DEPTH / 4 + 2);
        let bytes = 8 * vectors + 4 * (subgroups * m * n + TILE + GRID_WORDS);
        let room = invocations <= device.invocations && bytes <= device.shared_bytes;
        (fits && room).then_some(Self { matrix: (m, n, k), invocations, along_rows, along_outs })
    }
}

/// Rows of the matrix that a workgroup has where the ranks of a row stand side by side.
fn summed_outs(team: u32, ranks: u32) -> u32 {
    (64 / (team * ranks).max(1)).max(1)
}

/// Whether two matrices can be read by one kernel.
pub(crate) fn alike(a: WeightShape, b: WeightShape) -> bool {
    let format = |shape: WeightShape| -> Format { shape.format };
    format(a) == format(b) && (a.rows, a.cols) == (b.rows, b.cols)
}
