//! What `append@1` refuses, and which rows it stores.

use coli_plugin_api::describe::{Keep, StateKind};
use coli_plugin_api::program::{Access, Domain};

use super::{Append, AppendParams, Rounding};
use crate::contract::{Alone, CaseWeights, Columns, CpuCall, RowAt, StateAccess};
use crate::ops::refusals::{Refusal, Use, all_refused, ids, numbers, rows};

fn valid(stride: u32, keep: Keep) -> (AppendParams, Use) {
    let using = Use {
        ins: vec![numbers(3), numbers(1)],
        outs: vec![],
        weights: vec![],
        states: vec![(rows(&[3, 1], stride, keep), Access::Append)],
    };
    (AppendParams { rounding: Rounding::None }, using)
}

#[test]
fn what_does_not_fit_the_state_is_refused() {
    let changes: &[Refusal<AppendParams>] = &[
        (|p, _| p.rounding = Rounding::Bf16, "rounding bf16 not implemented"),
        (|_, u| u.ins.clear(), "0 inputs, expected 1 to 16"),
        (|_, u| u.ins.truncate(1), "inputs is 1, expected 2"),
        (|_, u| u.ins[0] = numbers(4), "input 0: width is 4, expected 3"),
        (|_, u| u.ins[1] = ids(1), "input 1: type I32, expected F32"),
        (|_, u| u.ins.iter_mut().for_each(|input| input.0 = Domain::Outs), "input 0: rows of Outs, expected those of the step"),
        (|_, u| u.outs.push(numbers(4)), "1 outputs, expected 0"),
        (|_, u| u.weights.push((1, 1)), "1 weights, expected 0"),
        (|_, u| u.states.clear(), "0 states, expected 1"),
        (|_, u| u.states[0].1 = Access::Read, "state 0: access Read, expected Append"),
        (|_, u| u.states[0].0 = rows(&[3, 1], 0, Keep::All), "state 0: stride 0, expected at least 1"),
        (|_, u| u.states[0].0 = StateKind::Accumulator { shape: vec![4] }, "state 0: an accumulator, expected rows"),
    ];
    for (stride, keep) in [(1, Keep::All), (4, Keep::All), (1, Keep::Last(2)), (4, Keep::Last(7)), (u32::MAX, Keep::Last(u32::MAX))] {
        all_refused::<Append>(&valid(stride, keep), changes);
    }
}

/// Notes which rows are written.
#[derive(Default)]
struct Written(Vec<(u32, u32)>, [f32; 1]);

impl StateAccess for Written {
    fn row(&self, _: usize, _: u32, _: u32) -> Option<&[f32]> {
        None
    }

    fn row_mut(&mut self, _: usize, conv: u32, index: u32) -> Option<&mut [f32]> {
        self.0.push((conv, index));
        (conv < 9).then_some(&mut self.1)
    }
}

fn written(stride: u32, at: &[(u32, u32)]) -> Result<Vec<(u32, u32)>, String> {
    let rows: Vec<RowAt> = at.iter().map(|(conv, pos)| RowAt { conv: *conv, pos: *pos, step_row: 0 }).collect();
    let (words, mut states) = (vec![0; rows.len()], Written::default());
    super::cpu::run(
        stride,
        &mut CpuCall {
            rows: &rows,
            ins: &[Columns::new(&words, 1, 0, 1)],
            outs: &mut [],
            weights: &[],
            groups: &[],
            store: &CaseWeights::default(),
            states: &mut states,
            sampling: &[],
            scratch: &mut vec![],
            team: &Alone,
            fast: None,
        },
    )?;
    Ok(states.0)
}

#[test]
fn only_the_last_position_of_a_group_stores_its_row() {
    assert_eq!(written(1, &[(0, 0), (0, 1), (3, 7)]), Ok(vec![(0, 0), (0, 1), (3, 7)]));
    assert_eq!(written(4, &[(0, 2), (0, 3), (0, 4), (1, 7), (1, 8), (2, 10), (2, 11)]), Ok(vec![(0, 0), (1, 1), (2, 2)]));
    assert_eq!(written(u32::MAX, &[(0, u32::MAX), (0, u32::MAX - 1)]), Ok(vec![(0, 0)]));
    assert_eq!(written(2, &[(9, 4), (9, 5)]), Err("no room for position 5 of conversation 9".into()));
}
