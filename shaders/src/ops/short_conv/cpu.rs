//! CPU twin. Order: the taps of a column, the oldest first, are an inner product as in [`crate::sums`]; then the activation, then the
//! residual.

use super::{ShortConvAct, ShortConvParams};
use crate::contract::{CpuCall, StateAccess};
use crate::sums;

pub(super) fn run(params: &ShortConvParams, call: &mut CpuCall<'_>) -> Result<(), String> {
    let taps = params.taps as usize;
    let weight = call.weight(0).decode();
    for (row, at) in call.rows.iter().enumerate() {
        let x = call.ins[0].row(row);
        let stored = call.states.row_mut(0, at.conv, at.pos);
        stored.ok_or_else(|| format!("no room for position {} of conversation {}", at.pos, at.conv))?.copy_from_slice(x);
        window(params, &*call.states, (at.conv, at.pos), x.len(), call.scratch)?;
        let columns = weight.chunks_exact(taps).zip(call.scratch.chunks_exact(taps));
        for ((y, x), (weight, window)) in call.outs[0].row(row).iter_mut().zip(x).zip(columns) {
            let sum = sums::dot(weight, window);
            let sum = if params.act == ShortConvAct::Silu { sum / (1.0 + (-sum).exp()) } else { sum };
            *y = if params.residual { sum + x } else { sum };
        }
    }
    Ok(())
}

/// What a row sums over, column after column, the oldest position first.
fn window(
    params: &ShortConvParams,
    states: &dyn StateAccess,
    (conv, pos): (u32, u32),
    width: usize,
    out: &mut Vec<f32>,
) -> Result<(), String> {
    let taps = params.taps as usize;
    out.clear();
    out.resize(width * taps, 0.0);
    for tap in 0..params.taps {
        // Both factors are bounded, so this fits.
        let Some(index) = pos.checked_sub((params.taps - 1 - tap) * params.dilation) else { continue };
        let stored = states.row(0, conv, index);
        let stored = stored.ok_or_else(|| format!("the row at position {index} of conversation {conv} is not stored"))?;
        let places = out.iter_mut().skip(tap as usize).step_by(taps);
        places.zip(stored).for_each(|(place, number)| *place = *number);
    }
    Ok(())
}
