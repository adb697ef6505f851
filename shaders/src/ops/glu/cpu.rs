//! CPU twin. No sums.

use super::{GluKind, GluParams};
use crate::ops::act::functions::{gelu, silu};

/// `gate = glu(gate, up)`, number by number.
pub(crate) fn apply(params: GluParams, gate: &mut [f32], up: &[f32]) {
    let limit = params.limit;
    let pairs = gate.iter_mut().zip(up);
    match params.kind {
        GluKind::SiluClamp => pairs.for_each(|(gate, up)| *gate = silu(gate.min(limit)) * up.clamp(-limit, limit)),
        GluKind::Gelu => pairs.for_each(|(gate, up)| *gate = gelu(*gate) * up),
        // The other kind was refused when the op was prepared.
        _ => pairs.for_each(|(gate, up)| *gate = silu(*gate) * up),
    }
}
