//! Device form of fast mode, for prompts: which kernel, and how it is cut to a device.

use super::{Attend, AttendParams, plan};
use crate::device::{Arg, DeviceShape, Dispatch, Extent, PlanCall};

/// Rows of a workgroup without matrix units, and with them.
const TILE: u32 = 32;
const MATRIX_TILE: u32 = 64;
/// Columns of a head, at most: each invocation holds its share of results.
const WIDTH_MAX: u32 = 256;

/// The dispatch over all rows, `None` where there is no such kernel: of lists, and of wide heads.
pub(super) fn dispatch(op: &Attend, call: &PlanCall<'_>) -> Option<Dispatch> {
    if op.params.v_width > WIDTH_MAX || op.sources.iter().any(|source| source.list.is_some()) {
        return None;
    }
    let (kernel, tile, constants) = match Cut::of(&op.params, call.device) {
        Some(cut) => ("attend_flash_matrix", MATRIX_TILE, plan::constants(op, call, cut.invocations(), &cut.constants())),
        None => ("attend_flash", TILE, plan::constants(op, call, plan::INVOCATIONS, &[])),
    };
    let mut args = vec![Arg::In(0), Arg::Out(0)];
    args.extend(plan::states(op));
    args.extend([plan::sinks(op), Arg::Float(op.params.scale)]);
    let grid = [Extent::Fixed(op.params.heads), Extent::Rows { per: tile, times: 1 }, Extent::Fixed(1)];
    Some(Dispatch { kernel: kernel.into(), constants, args, grid })
}

/// How a workgroup with matrix units is made up.
struct Cut {
    /// Rows, columns and depth of a product.
    size: (u32, u32, u32),
    lanes: u32,
    /// Rows of K or V in shared memory.
    staged: u32,
}

impl Cut {
    fn of(params: &AttendParams, device: &DeviceShape) -> Option<Self> {
        let size = device.matrix?;
        let (rows, columns, depth) = size;
        let lanes = device.subgroup;
        let fits = MATRIX_TILE.is_multiple_of(rows) && lanes.is_multiple_of(rows) && lanes / rows <= plan::SPLIT;
        if !fits || params.k_width > WIDTH_MAX || MATRIX_TILE / rows * lanes > device.invocations {
            return None;
        }
        let cut = |staged: &u32| Self { size, lanes, staged: *staged };
        let staged = [64u32, 32].into_iter().filter(|staged| [rows, columns, depth].iter().all(|of| staged.is_multiple_of(*of)));
        staged.map(|staged| cut(&staged)).find(|cut| cut.bytes(params) <= device.shared_bytes)
    }

    /// Shared memory of a workgroup.
    fn bytes(&self, params: &AttendParams) -> u32 {
        let (rows, columns, depth) = self.size;
        let padded = params.k_width.next_multiple_of(depth).max(params.v_width.next_multiple_of(columns));
        let staged = 2 * self.staged * (padded + 8);
        let scores = MATRIX_TILE * (4 * (plan::SPLIT + 4) + 2 * (plan::SPLIT + 8));
        let of_rows = 4 * MATRIX_TILE * (2 + self.lanes / rows);
        staged + scores + of_rows + 8 * plan::SPLIT
    }

    fn subgroups(&self) -> u32 {
        MATRIX_TILE / self.size.0
    }

    fn invocations(&self) -> u32 {
        self.subgroups() * self.lanes
    }

    fn constants(&self) -> [u32; 6] {
        let (rows, columns, depth) = self.size;
        [rows, columns, depth, self.lanes, self.subgroups(), self.staged]
    }
}
