//! `append@1`: stores the step's rows in a state.
//!
//! The operands side by side are the row; with stride r, only the row of a group's last position is stored, at index `position / r`.
//! Storing the same row again changes nothing.
//!
//! Operands: one for each part of the state's row `[T, part]`. States: rows, append. No outputs.

mod cases;
mod cpu;
pub(crate) mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, Domain, StateId, Ty};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// How the stored numbers are rounded, beyond what the state's parts allow.
    pub enum Rounding {
        /// Not.
        None = 0, "none";
        /// To bf16.
        Bf16 = 1, "bf16";
    }
}

params! {
    /// Parameters of `append@1`.
    pub struct AppendParams {
        /// How the stored numbers are rounded.
        rounding: Rounding,
    }
}

/// Records the storing of `parts` side by side.
pub fn record(r: &mut Recorder, parts: &[Operand], state: StateId) {
    let [] = r.op(OpCall {
        name: "append@1",
        ins: parts,
        states: &[(state, Access::Append)],
        params: AppendParams { rounding: Rounding::None }.encode(),
        ..OpCall::default()
    });
}

/// The prepared op.
pub struct Append {
    stride: u32,
}

impl Op for Append {
    const NAME: &'static str = "append";
    const VERSION: u16 = 1;
    type Params = AppendParams;

    fn prepare(params: AppendParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=16, 0, 0..=0, 1, 0)?;
        facts.one_domain()?;
        if params.rounding != Rounding::None {
            return facts::not_implemented(format!("rounding {}", params.rounding.text()));
        }
        let (parts, stride, _) = facts.rows_state(0, Access::Append)?;
        if stride == 0 {
            return Err("state 0: stride 0, expected at least 1".into());
        }
        facts::expect("inputs", facts.ins.len() as u64, parts.len() as u64)?;
        for (index, part) in parts.iter().enumerate() {
            let input = facts.input(index, Ty::F32)?;
            facts::expect(&format!("input {index}: width"), u64::from(input.width), u64::from(part.width))?;
            if *input.domain != Domain::Tokens {
                return Err(format!("input {index}: rows of {:?}, expected those of the step", input.domain));
            }
        }
        Ok(Self { stride })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(self.stride, call)
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        Ok(plan::plan(self.stride, call))
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
