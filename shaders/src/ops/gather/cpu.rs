//! CPU twin: decodes the rows. Order: a sum adds the rows in the order of the ids, from 0; a mean divides it by how many there are.

use super::Join;
use crate::contract::CpuCall;
use crate::formats::WeightView;

pub(super) fn run(join: Join, call: &mut CpuCall<'_>) -> Result<(), String> {
    let (ids, table) = (call.ins[0], call.weight(0));
    for row in 0..call.rows.len() {
        let (ids, y) = (ids.ints(row), call.outs[0].row(row));
        if join == Join::Concat {
            for (id, part) in ids.iter().zip(y.chunks_exact_mut(table.cols())) {
                decode(table, *id, part)?;
            }
            continue;
        }
        y.fill(0.0);
        call.scratch.resize(table.cols(), 0.0);
        for id in ids {
            decode(table, *id, call.scratch)?;
            y.iter_mut().zip(&*call.scratch).for_each(|(y, number)| *y += number);
        }
        let count = ids.iter().filter(|id| **id != -1).count();
        if join == Join::Mean && count > 0 {
            y.iter_mut().for_each(|y| *y /= count as f32);
        }
    }
    Ok(())
}

/// A row of the table, zeros for -1.
fn decode(table: WeightView<'_>, id: i32, out: &mut [f32]) -> Result<(), String> {
    match usize::try_from(id) {
        Ok(index) if index < table.rows() => table.decode_row(index, out),
        Err(_) if id == -1 => out.fill(0.0),
        _ => return Err(format!("id {id} is outside a table of {} rows", table.rows())),
    }
    Ok(())
}
