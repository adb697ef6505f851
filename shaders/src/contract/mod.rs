//! What an op must provide, and what it is given: plain data and small traits, with no executor in sight.
//!
//! An op is checked once, when a program is validated ([`Op::prepare`]), against [`OpFacts`]; after that its kernel believes every shape.
//! Its CPU twin ([`Op::cpu`]) is the definition of exact mode: one order of reduction, stated in its folder, so that a row's bits depend
//! on the row's own history alone.

mod call;
mod case;
pub mod case_file;
pub(crate) mod facts;
mod own;
mod team;

pub use call::{Columns, ColumnsMut, CpuCall, ExpertMatrix, Fast, RowAt, RowClass, Sampling, StateAccess, Stored, WeightStore};
pub use case::{Case, CaseWeights, Data, Expected};
pub use facts::{OpFacts, ValueFacts};
pub use own::{own, own_facts};
pub use team::{Alone, Team, share};

use std::sync::Arc;

use coli_plugin_api::own_op::OwnDevice;
use coli_plugin_api::params::Params;

use crate::device::{KernelText, Plan, PlanCall};
use crate::sums;

/// One op, prepared: a value of the implementing type holds the checked parameters and what follows from them.
pub trait Op: Sized + Send + Sync + 'static {
    /// Its name, without the version: the mathematics, never a model's name.
    const NAME: &'static str;
    /// Its version: a changed layout or meaning is a new one.
    const VERSION: u16;
    /// Its parameters.
    type Params: Params;

    /// Checks arity, types, widths, weights, states and parameters. An error names the operand or field and what was expected; what this
    /// version defines but no kernel does yet is refused here, by name.
    fn prepare(params: Self::Params, facts: &OpFacts<'_>) -> Result<Self, String>;

    /// The CPU twin. An error is for what only a run can show, such as an id outside a table.
    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String>;

    /// Whether each row of its outputs is made of the same row of its inputs and of nothing else, so that rows may run on any thread.
    const ROWS_APART: bool = false;

    /// Fast mode: other numbers than the CPU twin's, within the bounds of `docs/NUMERICS.md`, or the twin where the op gains nothing.
    fn fast(&self, call: &mut CpuCall<'_>, fast: &Fast<'_>) -> Result<(), String> {
        let _ = fast;
        exact(self, call)
    }

    /// The device form ([`crate::device`]): an error says why there is none, and the op's segment runs on the CPU.
    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        let _ = call;
        Err("has no device form".into())
    }

    /// The kernels that its plans name.
    fn kernels() -> &'static [KernelText] {
        &[]
    }

    /// The device form of an op that a plugin brings; the library's have plans instead.
    fn own_device(&self) -> Result<Option<OwnDevice>, String> {
        Ok(None)
    }

    /// Its cases: tiny recordings with the results that an independent implementation gives.
    fn cases() -> Vec<Case>;
}

/// What runs a prepared op on the CPU.
pub type Run = dyn Fn(&mut CpuCall<'_>) -> Result<(), String> + Send + Sync;
/// What says how it runs on a device.
pub type Planner = dyn Fn(&PlanCall<'_>) -> Result<Plan, String> + Send + Sync;

/// A prepared op of any kind.
pub struct Kernel {
    run: Box<Run>,
    plan: Box<Planner>,
}

impl Kernel {
    /// An op that runs on the CPU alone.
    pub fn cpu_only(run: Box<Run>) -> Self {
        Self { run, plan: Box::new(|_| Err("has no device form".into())) }
    }

    /// An op of a plugin's own.
    pub fn of_plugin(run: Box<Run>, plan: Box<Planner>) -> Self {
        Self { run, plan }
    }

    /// Runs it on the CPU.
    pub fn run(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        (self.run)(call)
    }

    /// Says how it runs on a device.
    pub fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        (self.plan)(call)
    }
}

/// Decodes an op's parameters, checks everything, and gives the kernel.
pub type Prepare = Box<dyn Fn(&OpFacts<'_>) -> Result<Kernel, String> + Send + Sync>;

/// An op as the registry holds it. No field is optional, so an op without a CPU twin or without cases does not compile.
pub struct OpEntry {
    /// `name@version`.
    pub id: String,
    /// Decodes the parameters, checks everything, and gives the kernel.
    pub prepare: fn(&OpFacts<'_>) -> Result<Kernel, String>,
    /// The kernels of its device form.
    pub kernels: &'static [KernelText],
    /// The op's cases.
    pub cases: fn() -> Vec<Case>,
}

impl OpEntry {
    /// The entry of an op.
    pub fn of<O: Op>() -> Self {
        Self { id: op_id::<O>(), prepare: prepare::<O>, kernels: O::kernels(), cases: O::cases }
    }
}

/// `name@version` of an op, as recordings and manifests write it.
pub fn op_id<O: Op>() -> String {
    format!("{}@{}", O::NAME, O::VERSION)
}

fn prepare<O: Op>(facts: &OpFacts<'_>) -> Result<Kernel, String> {
    let params = O::Params::decode(facts.params)?;
    let op = Arc::new(O::prepare(params, facts)?);
    let planned = op.clone();
    let run = move |call: &mut CpuCall<'_>| match call.fast {
        Some(fast) => op.fast(call, fast),
        None => exact(&*op, call),
    };
    Ok(Kernel { run: Box::new(run), plan: Box::new(move |call| planned.plan(call)) })
}

/// The CPU twin, on all threads where its rows stand apart.
pub(crate) fn exact<O: Op>(op: &O, call: &mut CpuCall<'_>) -> Result<(), String> {
    if O::ROWS_APART { team::by_rows(op, call) } else { sums::wide(|| op.cpu(call)) }
}
