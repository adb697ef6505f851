//! CPU twin: decodes the rows. No sums.

use crate::contract::CpuCall;

pub(super) fn run(call: &mut CpuCall<'_>) -> Result<(), String> {
    let (ids, table) = (call.ins[0], call.weight(0));
    for row in 0..call.rows.len() {
        let parts = call.outs[0].row(row).chunks_exact_mut(table.cols());
        for (id, part) in ids.ints(row).iter().zip(parts) {
            match usize::try_from(*id) {
                Ok(index) if index < table.rows() => table.decode_row(index, part),
                Err(_) if *id == -1 => part.fill(0.0),
                _ => return Err(format!("id {id} is outside a table of {} rows", table.rows())),
            }
        }
    }
    Ok(())
}
