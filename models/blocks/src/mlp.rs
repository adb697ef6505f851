//! A gated MLP: `y = Down(glu(Gate x, Up x))`.

use coli_plugin_api::describe::{Description, View, WeightRef};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::ops::glu::{self, GluParams};
use coli_shaders::ops::matmul;

/// Its weights.
#[derive(Debug, Clone, Copy)]
pub struct Mlp {
    gate: WeightRef,
    up: WeightRef,
    down: WeightRef,
}

impl Mlp {
    /// Describes the weights of one whose rows have `width` numbers, with `hidden` inside; `stored` names gate, up and down.
    pub fn describe(d: &mut Description, role: &str, width: u32, hidden: u32, stored: [String; 3]) -> Self {
        let [gate, up, down] = stored.map(View::tensor);
        Self {
            gate: d.matrix(format!("{role}.gate"), hidden, width, gate),
            up: d.matrix(format!("{role}.up"), hidden, width, up),
            down: d.matrix(format!("{role}.down"), width, hidden, down),
        }
    }

    /// Records it.
    pub fn record(&self, r: &mut Recorder, x: Operand, act: GluParams) -> Operand {
        let (gate, up) = (matmul::record(r, x, self.gate), matmul::record(r, x, self.up));
        let inner = glu::record(r, gate, up, act);
        matmul::record(r, inner, self.down)
    }
}
