//! CPU twin: copies. No sums.

use crate::contract::CpuCall;

pub(super) fn run(stride: u32, call: &mut CpuCall<'_>) -> Result<(), String> {
    let last_of_group = |pos: u32| pos % stride == stride - 1;
    for (row, at) in call.rows.iter().enumerate().filter(|(_, at)| last_of_group(at.pos)) {
        let stored = call.states.row_mut(0, at.conv, at.pos / stride);
        let mut rest = stored.ok_or_else(|| format!("no room for position {} of conversation {}", at.pos, at.conv))?;
        for part in call.ins {
            let (head, tail) = rest.split_at_mut(part.width());
            head.copy_from_slice(part.row(row));
            rest = tail;
        }
    }
    Ok(())
}
