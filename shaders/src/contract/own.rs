//! A plugin's own op from a plain [`Op`]: a third party implements the trait that the library's ops implement, and exports it with
//! [`own`].
//!
//! ```ignore
//! fn own_ops() -> Vec<Box<dyn OwnOp>> {
//!     vec![own::<Decay>()]
//! }
//! ```
//!
//! The same types stand on both sides of the border, so that what an op may count on is said once: this module takes an op's facts, call
//! and cases apart for the border, and puts them together behind it.

use std::marker::PhantomData;

use coli_plugin_api::codec;
use coli_plugin_api::describe::{Description, SegmentName, WeightRef};
use coli_plugin_api::own_op::{
    OwnCall, OwnCase, OwnData, OwnDevice, OwnExpected, OwnFacts, OwnKernel, OwnOp, OwnPort, OwnRows, OwnShape, OwnState, OwnValue,
    OwnWeight,
};
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Domain, GroupId, WeightId};

use super::{
    Alone, Case, CaseWeights, Columns, ColumnsMut, CpuCall, Data, Expected, ExpertMatrix, Op, OpFacts, RowAt, Sampling, StateAccess,
    ValueFacts, WeightStore, op_id,
};
use crate::formats::{Format, WeightView};

/// An op for `Plugin::own_ops`. Its name is `vendor.op`; it has no expert groups and at most one state.
pub fn own<O: Op>() -> Box<dyn OwnOp> {
    Box::new(Own::<O>(PhantomData))
}

struct Own<O>(PhantomData<fn() -> O>);

impl<O: Op> OwnOp for Own<O> {
    fn id(&self) -> String {
        op_id::<O>()
    }

    fn prepare(&self, facts: &OwnFacts) -> Result<Box<dyn OwnKernel>, String> {
        Ok(Box::new(Kernel(prepared::<O>(facts)?)))
    }

    fn device(&self, facts: &OwnFacts) -> Result<Option<OwnDevice>, String> {
        prepared::<O>(facts)?.own_device()
    }

    fn cases(&self) -> Result<Vec<OwnCase>, String> {
        O::cases().iter().map(own_case).collect()
    }
}

fn prepared<O: Op>(facts: &OwnFacts) -> Result<O, String> {
    let params = O::Params::decode(&facts.params)?;
    let domain = if facts.rows == OwnRows::Tokens { Domain::Tokens } else { Domain::Outs };
    let values = |list: &[OwnValue]| -> Vec<ValueFacts<'_>> {
        list.iter().map(|value| ValueFacts { domain: &domain, ty: value.ty, width: value.width }).collect()
    };
    let (ins, outs) = (values(&facts.ins), values(&facts.outs));
    let weight = |(index, shape): (usize, &OwnShape)| WeightRef { id: WeightId(index as u32), rows: shape.rows, cols: shape.cols };
    let weights: Vec<WeightRef> = facts.weights.iter().enumerate().map(weight).collect();
    let states: Vec<_> = facts.state.iter().map(|(kind, access)| (kind, *access)).collect();
    let facts = OpFacts { params: &facts.params, ins: &ins, outs: &outs, weights: &weights, states: &states, groups: &[] };
    O::prepare(params, &facts)
}

/// Facts of one use as they cross the border; what an own op cannot have is refused by name.
pub fn own_facts(facts: &OpFacts<'_>) -> Result<OwnFacts, String> {
    if !facts.groups.is_empty() {
        return Err("an op of a plugin's own has no expert groups".into());
    }
    if facts.states.len() > 1 {
        return Err(format!("{} states: an op of a plugin's own has at most one", facts.states.len()));
    }
    facts.one_domain()?;
    let rows = match facts.outs.first().or(facts.ins.first()).map(|value| value.domain) {
        Some(Domain::Tokens) => OwnRows::Tokens,
        Some(Domain::Outs) => OwnRows::Outs,
        Some(other) => return Err(format!("rows of {other:?} not implemented for an op of a plugin's own")),
        None => return Err("it has neither inputs nor outputs".into()),
    };
    let values = |list: &[ValueFacts<'_>]| list.iter().map(|value| OwnValue { ty: value.ty, width: value.width }).collect();
    Ok(OwnFacts {
        params: facts.params.to_vec(),
        rows,
        ins: values(facts.ins),
        outs: values(facts.outs),
        weights: facts.weights.iter().map(|weight| OwnShape { rows: weight.rows, cols: weight.cols }).collect(),
        state: facts.states.first().map(|(kind, access)| ((*kind).clone(), *access)),
    })
}

struct Kernel<O>(O);

impl<O: Op> OwnKernel for Kernel<O> {
    fn run(&self, call: &mut OwnCall<'_>) -> Result<(), String> {
        let rows: Vec<RowAt> = call.rows.iter().map(|row| RowAt { conv: row.conv, pos: row.pos, step_row: row.step_row }).collect();
        let ins: Vec<Columns<'_>> = call.ins.iter().map(|input| Columns::new(input.words, input.stride, input.col0, input.ncols)).collect();
        let mut outs: Vec<ColumnsMut<'_>> = call.outs.iter_mut().map(|output| ColumnsMut::new(&mut *output.words, output.width)).collect();
        let weights: Vec<WeightId> = (0..call.weights.len() as u32).map(WeightId).collect();
        self.0.cpu(&mut CpuCall {
            rows: &rows,
            ins: &ins,
            outs: &mut outs,
            weights: &weights,
            groups: &[],
            store: &Numbers(&call.weights),
            states: &mut OneState(&mut call.state),
            sampling: &[],
            scratch: &mut Vec::new(),
            team: &Alone,
            fast: None,
        })
    }
}

/// Weights that came as numbers.
struct Numbers<'a>(&'a [OwnWeight<'a>]);

impl WeightStore for Numbers<'_> {
    fn weight(&self, id: WeightId) -> Option<WeightView<'_>> {
        let weight = self.0.get(id.0 as usize)?;
        WeightView::new(Format::F32, weight.rows, weight.cols, bytemuck::cast_slice(weight.numbers))
    }

    fn expert(&self, _: GroupId, _: u32, _: u32, _: ExpertMatrix) -> Option<WeightView<'_>> {
        None
    }
}

struct OneState<'a, 'b>(&'a mut OwnState<'b>);

impl StateAccess for OneState<'_, '_> {
    fn row(&self, state: usize, conv: u32, index: u32) -> Option<&[f32]> {
        if state == 0 { self.0.row(conv, index) } else { None }
    }

    fn row_mut(&mut self, state: usize, conv: u32, index: u32) -> Option<&mut [f32]> {
        if state == 0 { self.0.row_mut(conv, index) } else { None }
    }

    fn accumulator(&mut self, state: usize, conv: u32, pos: u32) -> Option<&mut [f32]> {
        if state == 0 { self.0.accumulator(conv, pos) } else { None }
    }
}

/// A case as it crosses the border.
fn own_case(case: &Case) -> Result<OwnCase, String> {
    let fault = |text: &str| format!("case `{}`: {text}", case.name);
    if !case.description.groups.is_empty() {
        return Err(fault("an op of a plugin's own has no expert groups"));
    }
    if case.sampling != Sampling::GREEDY {
        return Err(fault("only greedy sampling crosses the border"));
    }
    let weight = |index: usize| {
        let view = case.weights.weight(WeightId(index as u32)).ok_or_else(|| fault(&format!("weight {index} is missing")))?;
        Ok(view.decode().into_iter().map(f32::to_bits).collect())
    };
    let port = |name: &str, data: &Data| {
        let data = match data {
            Data::F32(numbers) => OwnData::F32(numbers.iter().map(|number| number.to_bits()).collect()),
            Data::I32(ids) => OwnData::I32(ids.clone()),
        };
        OwnPort { port: name.into(), data }
    };
    Ok(OwnCase {
        name: case.name.clone(),
        from: case.from.clone(),
        description: case.description.clone(),
        weights: (0..case.description.weights.len()).map(weight).collect::<Result<_, String>>()?,
        recording: codec::encode(&case.recording).map_err(|error| fault(&error))?,
        rows: case.rows.iter().map(|row| (row.conv, row.pos)).collect(),
        tokens: case.tokens.clone(),
        outs: case.outs.clone(),
        inputs: case.inputs.iter().map(|(name, data)| port(name, data)).collect(),
        expected: case
            .expected
            .iter()
            .map(|expected| OwnExpected { is: port(&expected.port, &expected.data), tolerance: expected.tolerance })
            .collect(),
    })
}

impl Case {
    /// A case from behind the border. Only what its own numbers must be to hang together is checked; who runs it checks the rest.
    pub fn from_own(own: OwnCase) -> Result<Self, String> {
        let fault = |text: String| format!("case `{}`: {text}", own.name);
        let recording = codec::decode(&own.recording).map_err(fault)?;
        let weights = weights(&own.description, &own.weights).map_err(fault)?;
        if own.description.segments != [SegmentName::Layer(0)] {
            return Err(fault("its description has another segment than layer.0".into()));
        }
        if !own.description.groups.is_empty() {
            return Err(fault("an op of a plugin's own has no expert groups".into()));
        }
        let at = |(row, (conv, pos)): (usize, &(u32, u32))| RowAt { conv: *conv, pos: *pos, step_row: row as u32 };
        Ok(Self {
            rows: own.rows.iter().enumerate().map(at).collect(),
            inputs: own.inputs.into_iter().map(|port| (port.port, data(port.data))).collect(),
            expected: own
                .expected
                .into_iter()
                .map(|expected| Expected { port: expected.is.port, data: data(expected.is.data), tolerance: expected.tolerance })
                .collect(),
            name: own.name,
            from: own.from,
            description: own.description,
            weights,
            recording,
            tokens: own.tokens,
            outs: own.outs,
            sampling: Sampling::GREEDY,
        })
    }
}

fn data(data: OwnData) -> Data {
    match data {
        OwnData::F32(bits) => Data::F32(bits.into_iter().map(f32::from_bits).collect()),
        OwnData::I32(ids) => Data::I32(ids),
    }
}

fn weights(description: &Description, bits: &[Vec<u32>]) -> Result<CaseWeights, String> {
    if description.weights.len() != bits.len() {
        return Err(format!("{} weights are described, {} are there", description.weights.len(), bits.len()));
    }
    let mut weights = CaseWeights::default();
    for (weight, bits) in description.weights.iter().zip(bits) {
        let (rows, cols) = match weight.shape[..] {
            [cols] => (1, cols as usize),
            [rows, cols] => (rows as usize, cols as usize),
            _ => return Err(format!("weight `{}` has {} dimensions", weight.role, weight.shape.len())),
        };
        let numbers: Vec<f32> = bits.iter().map(|bits| f32::from_bits(*bits)).collect();
        if rows.checked_mul(cols) != Some(numbers.len()) {
            return Err(format!("weight `{}` has {} numbers for {rows}x{cols}", weight.role, numbers.len()));
        }
        weights.push(Format::F32, rows, cols, &numbers);
    }
    Ok(weights)
}
