//! Device form: four columns of a row an invocation.

use super::Join;
use crate::device::{Arg, Dispatch, Extent, KernelName, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "gather", text: include_str!("gather.comp"), per: Per::Format }];

const INVOCATIONS: u32 = 64;
const FAULTS: &[&str] = &["id {detail} is outside a table"];

pub(super) fn plan(join: Join, call: &PlanCall<'_>) -> Result<Plan, String> {
    let (table, ids) = (call.weights[0], call.ins[0].width);
    let size = |bytes: Option<usize>| {
        let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
        bytes.ok_or_else(|| format!("a table of rows of {} numbers has no device form", table.cols))
    };
    let row_bytes = size(table.format.row_bytes(table.cols as usize))?;
    let scale_bytes = size(table.format.scale_bytes(table.cols as usize))?;
    let scale_rows = size(Some(table.format.scale_rows()))?;
    let parts = if join == Join::Concat { ids } else { 1 };
    let dispatch = Dispatch {
        kernel: KernelName { name: "gather", format: Some(table.format) },
        constants: vec![INVOCATIONS, table.rows, table.cols, ids, join as u32, row_bytes, scale_bytes, scale_rows],
        args: vec![Arg::In(0), Arg::Out(0), Arg::Matrix(0)],
        grid: [Extent::of(table.cols.div_ceil(4) * parts, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    };
    Ok(Plan { faults: FAULTS, ..Plan::one(dispatch) })
}
