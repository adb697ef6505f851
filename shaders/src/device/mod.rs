//! The device form of ops: kernels in GLSL, and plans that say which of them run, over what grid and with what arguments.
//!
//! Everything here is plain data and pure functions; nothing knows Vulkan. `README.md` beside this file says how a kernel is written and
//! what it finds at run time.

mod glsl;
mod own;
mod plan;

pub use glsl::{KernelText, Module, Per, modules};
pub use own::{Bound, own_plan};
pub use plan::{
    Arg, DeviceShape, Dispatch, ExpertShape, Extent, FillRow, Grid, KernelName, MatrixShape, Operand, Plan, PlanCall, PlanFacts, RowTable,
    SAMPLING_WORDS, Scratch, Seen, StateForm, WeightShape,
};
