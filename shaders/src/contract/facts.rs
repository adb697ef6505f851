//! What is known of an op before anything runs, and the checks that most ops share.

use coli_plugin_api::describe::{ExpertGroup, Keep, RowPart, StateKind, WeightRef};
use coli_plugin_api::program::{Access, Domain, Ty};

/// An operand or output: its rows, type and width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueFacts<'a> {
    /// Where its rows come from.
    pub domain: &'a Domain,
    /// What its numbers are.
    pub ty: Ty,
    /// Numbers a row.
    pub width: u32,
}

/// All that is known of one op of a recording, resolved against the description.
#[derive(Debug, Clone, Copy)]
pub struct OpFacts<'a> {
    /// The parameters' bytes.
    pub params: &'a [u8],
    /// Operands, in order.
    pub ins: &'a [ValueFacts<'a>],
    /// Outputs, in order.
    pub outs: &'a [ValueFacts<'a>],
    /// Weights, in order.
    pub weights: &'a [WeightRef],
    /// States, in order, with how the op uses each.
    pub states: &'a [(&'a StateKind, Access)],
    /// Expert groups, in order.
    pub groups: &'a [&'a ExpertGroup],
}

impl<'a> OpFacts<'a> {
    /// Checks the number of inputs, outputs, weights, states and groups; inputs and weights may be a range.
    pub fn counts(
        &self,
        ins: std::ops::RangeInclusive<usize>,
        outs: usize,
        weights: std::ops::RangeInclusive<usize>,
        states: usize,
        groups: usize,
    ) -> Result<(), String> {
        for (what, have, want) in [
            ("inputs", self.ins.len(), ins),
            ("outputs", self.outs.len(), outs..=outs),
            ("weights", self.weights.len(), weights),
            ("states", self.states.len(), states..=states),
            ("groups", self.groups.len(), groups..=groups),
        ] {
            if !want.contains(&have) {
                let (low, high) = (want.start(), want.end());
                let want = if low == high { low.to_string() } else { format!("{low} to {high}") };
                return Err(format!("{have} {what}, expected {want}"));
            }
        }
        Ok(())
    }

    /// Input `index`, which must be of this type.
    pub fn input(&self, index: usize, ty: Ty) -> Result<ValueFacts<'a>, String> {
        typed("input", index, self.ins, ty)
    }

    /// Output `index`, which must be of this type and width.
    pub fn output(&self, index: usize, ty: Ty, width: u64) -> Result<ValueFacts<'a>, String> {
        let facts = typed("output", index, self.outs, ty)?;
        expect(&format!("output {index}: width"), u64::from(facts.width), width)?;
        Ok(facts)
    }

    /// All inputs and outputs must have the rows of one domain.
    pub fn one_domain(&self) -> Result<(), String> {
        let mut values = self.ins.iter().chain(self.outs);
        let Some(first) = values.next() else { return Ok(()) };
        match values.find(|facts| facts.domain != first.domain) {
            None => Ok(()),
            Some(other) => Err(format!("operands of two domains, {:?} and {:?}", first.domain, other.domain)),
        }
    }

    /// Weight `index` must be a matrix of these dimensions.
    pub fn matrix(&self, index: usize, rows: u64, cols: u64) -> Result<WeightRef, String> {
        let weight = *self.weights.get(index).ok_or_else(|| format!("weight {index} is missing"))?;
        if (u64::from(weight.rows), u64::from(weight.cols)) != (rows, cols) {
            return Err(format!("weight {index} is {}x{}, expected {rows}x{cols}", weight.rows, weight.cols));
        }
        Ok(weight)
    }

    /// Weight `index` must be a vector of this length.
    pub fn vector(&self, index: usize, len: u64) -> Result<WeightRef, String> {
        self.matrix(index, 1, len)
    }

    /// State `index` must be rows, used with this access: its parts, stride and what it keeps.
    pub fn rows_state(&self, index: usize, access: Access) -> Result<(&'a [RowPart], u32, Keep), String> {
        let (kind, used) = *self.states.get(index).ok_or_else(|| format!("state {index} is missing"))?;
        if used != access {
            return Err(format!("state {index}: access {used:?}, expected {access:?}"));
        }
        match kind {
            StateKind::Rows { parts, stride, keep } => Ok((parts, *stride, *keep)),
            StateKind::Accumulator { .. } => Err(format!("state {index}: an accumulator, expected rows")),
        }
    }

    /// State `index` must be rows of these parts, one for each position, to which the op appends the step's rows; besides them it reads
    /// those of the last `back` positions, which the state must keep.
    pub fn window_state(&self, index: usize, widths: &[u32], back: u64) -> Result<(), String> {
        let (parts, stride, keep) = self.rows_state(index, Access::Append)?;
        let have: Vec<u32> = parts.iter().map(|part| part.width).collect();
        if have != widths {
            return Err(format!("state {index}: parts of {have:?}, expected {widths:?}"));
        }
        expect(&format!("state {index}: stride"), u64::from(stride), 1)?;
        match keep {
            Keep::Last(n) if u64::from(n) < back => Err(format!("state {index}: keeps the last {n}, expected at least {back}")),
            Keep::Last(_) | Keep::All => Ok(()),
        }
    }

    /// State `index` must be an accumulator that the op advances: its dimensions.
    pub fn accumulator_state(&self, index: usize) -> Result<&'a [u32], String> {
        let (kind, used) = *self.states.get(index).ok_or_else(|| format!("state {index} is missing"))?;
        if used != Access::Update {
            return Err(format!("state {index}: access {used:?}, expected {:?}", Access::Update));
        }
        match kind {
            StateKind::Accumulator { shape } => Ok(shape),
            StateKind::Rows { .. } => Err(format!("state {index}: rows, expected an accumulator")),
        }
    }
}

fn typed<'a>(what: &str, index: usize, list: &[ValueFacts<'a>], ty: Ty) -> Result<ValueFacts<'a>, String> {
    let facts = *list.get(index).ok_or_else(|| format!("{what} {index} is missing"))?;
    if facts.ty != ty {
        return Err(format!("{what} {index}: type {:?}, expected {ty:?}", facts.ty));
    }
    Ok(facts)
}

/// An error unless two numbers agree.
pub(crate) fn expect(what: &str, have: u64, want: u64) -> Result<(), String> {
    if have == want { Ok(()) } else { Err(format!("{what} is {have}, expected {want}")) }
}

/// The refusal of something that a version defines and no kernel does yet.
pub(crate) fn not_implemented<T>(what: impl std::fmt::Display) -> Result<T, String> {
    Err(format!("{what} not implemented"))
}
