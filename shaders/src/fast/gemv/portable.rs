//! The scalar twin of the kernels for single tokens: it defines their bits, from a panel.

use crate::fast::acts::{ActUnits, UNIT};

/// Lanes of a sum.
pub(super) const LANES: usize = 16;

/// A row of a panel by units; `scales` and `mins` have 8 or 16 groups a unit.
#[derive(Clone, Copy)]
pub(super) struct Units<'a> {
    pub(super) values: &'a [[u8; UNIT]],
    pub(super) scales: &'a [f32],
    pub(super) mins: &'a [f32],
}

/// The product of two rows.
pub(super) fn dot(w: Units<'_>, x: ActUnits<'_>) -> f32 {
    let groups = w.scales.len() / w.values.len().max(1);
    let (mut a, mut m) = ([0f32; LANES], [0f32; LANES]);
    for (unit, (u, q)) in w.values.iter().zip(x.q).enumerate() {
        let (scales, mins) = (&w.scales[unit * groups..][..groups], &w.mins[unit * groups..][..groups]);
        for (at, (u, q)) in u.as_chunks::<4>().0.iter().zip(q.0.as_chunks::<4>().0).enumerate() {
            let sum: i32 = u.iter().zip(q).map(|(u, q)| i32::from(*u) * i32::from(*q)).sum();
            let scale = scales[at * groups / (UNIT / 4)] * x.scales[unit].0[at / 8];
            a[at % LANES] = (sum as f32).mul_add(scale, a[at % LANES]);
        }
        let sums: &[f32] = if groups == LANES { &x.halves[unit].0 } else { &x.sums[unit].0 };
        for (group, (min, sum)) in mins.iter().zip(sums).enumerate() {
            let lane = (unit * groups + group) % LANES;
            m[lane] = min.mul_add(*sum, m[lane]);
        }
    }
    tree(a) - tree(m)
}

/// The sum of lanes: `l` with `l + 8`, then `+ 4`, `+ 2`, `+ 1`.
pub(in super::super) fn tree(mut lanes: [f32; LANES]) -> f32 {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    lanes[0]
}
