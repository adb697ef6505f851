//! CPU twin. No sums.

use super::{GluKind, GluParams};

/// `gate = glu(gate, up)`, number by number.
pub(crate) fn apply(params: GluParams, gate: &mut [f32], up: &[f32]) {
    let limit = params.limit;
    let pairs = gate.iter_mut().zip(up);
    match params.kind {
        GluKind::SiluClamp => pairs.for_each(|(gate, up)| *gate = silu(gate.min(limit)) * up.clamp(-limit, limit)),
        // The other kinds were refused when the op was prepared.
        _ => pairs.for_each(|(gate, up)| *gate = silu(*gate) * up),
    }
}

fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}
