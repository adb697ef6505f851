//! For tests of ops: one valid use of an op, and the text that each change of it is refused with.

use coli_plugin_api::describe::{Keep, RowPart, StateKind, WeightRef};
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, Domain, Ty, WeightId};

use crate::contract::{Op, OpFacts, ValueFacts};

/// A use of an op.
#[derive(Clone)]
pub(crate) struct Use {
    pub ins: Vec<(Domain, Ty, u32)>,
    pub outs: Vec<(Domain, Ty, u32)>,
    /// Rows and columns.
    pub weights: Vec<(u32, u32)>,
    pub states: Vec<(StateKind, Access)>,
}

/// A value of the step's rows.
pub(crate) fn numbers(width: u32) -> (Domain, Ty, u32) {
    (Domain::Tokens, Ty::F32, width)
}

/// Ids of the step's rows.
pub(crate) fn ids(width: u32) -> (Domain, Ty, u32) {
    (Domain::Tokens, Ty::I32, width)
}

/// Rows with parts of these widths.
pub(crate) fn rows(widths: &[u32], stride: u32, keep: Keep) -> StateKind {
    StateKind::Rows { parts: widths.iter().map(|width| RowPart { width: *width, may_round: false }).collect(), stride, keep }
}

impl Use {
    /// What the op says to it.
    pub fn prepare<O: Op>(&self, params: &O::Params) -> Result<(), String> {
        fn facts(list: &[(Domain, Ty, u32)]) -> Vec<ValueFacts<'_>> {
            list.iter().map(|(domain, ty, width)| ValueFacts { domain, ty: *ty, width: *width }).collect()
        }
        let weights: Vec<WeightRef> =
            self.weights.iter().map(|(rows, cols)| WeightRef { id: WeightId(0), rows: *rows, cols: *cols }).collect();
        let states: Vec<_> = self.states.iter().map(|(kind, access)| (kind, *access)).collect();
        let params = params.encode();
        let (ins, outs) = (facts(&self.ins), facts(&self.outs));
        let facts = OpFacts { params: &params, ins: &ins, outs: &outs, weights: &weights, states: &states, groups: &[] };
        O::prepare(O::Params::decode(&params)?, &facts).map(|_| ())
    }
}

/// A change of a valid use, and how its refusal begins.
pub(crate) type Refusal<P> = (fn(&mut P, &mut Use), &'static str);

/// The use is accepted as it is, and refused after each change.
#[track_caller]
pub(crate) fn all_refused<O: Op>(valid: &(O::Params, Use), changes: &[Refusal<O::Params>]) {
    assert_eq!(valid.1.prepare::<O>(&valid.0), Ok(()), "the valid use");
    for (change, expected) in changes {
        let (mut params, mut using) = valid.clone();
        change(&mut params, &mut using);
        let text = using.prepare::<O>(&params).expect_err(expected);
        assert!(text.starts_with(expected), "`{text}` does not begin with `{expected}`");
    }
}
