//! CPU twin. Order: from 0, stream after stream, each product rounded before it is added; a mean divides the sum by n.

use crate::contract::CpuCall;

#[inline(always)]
pub(super) fn run(streams: usize, call: &mut CpuCall<'_>) {
    let weights = call.ins.get(1);
    for row in 0..call.rows.len() {
        let y = call.outs[0].row(row);
        y.fill(0.0);
        for (stream, h) in call.ins[0].row(row).chunks_exact(y.len()).enumerate() {
            match weights {
                Some(a) => add(y, a.row(row)[stream], h),
                None => y.iter_mut().zip(h).for_each(|(y, h)| *y += h),
            }
        }
        if weights.is_none() {
            y.iter_mut().for_each(|y| *y /= streams as f32);
        }
    }
}

/// `y += a * h`.
pub(crate) fn add(y: &mut [f32], a: f32, h: &[f32]) {
    y.iter_mut().zip(h).for_each(|(y, h)| *y += a * h);
}
