//! Several threads for one op, and ops that need nothing else to use them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Columns, ColumnsMut, CpuCall, Op, StateAccess};
use crate::sums;

/// Threads that run a part of an op together. Whoever runs ops brings them.
pub trait Team: Sync {
    /// Threads, the caller included.
    fn threads(&self) -> usize;
    /// Runs `part` on every thread, with the thread's number, and returns when all have ended.
    fn run(&self, part: &(dyn Fn(usize) + Sync));
}

/// The calling thread.
pub struct Alone;

impl Team for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, part: &(dyn Fn(usize) + Sync)) {
        part(0);
    }
}

/// Gives out chunks of work, one after the other, to whichever thread is free: `work` gets the chunk and the thread. What a chunk writes
/// must not depend on the thread.
pub fn share(team: &dyn Team, chunks: usize, work: &(dyn Fn(usize, usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let part = |thread: usize| {
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return;
            }
            work(chunk, thread);
        }
    };
    if chunks <= 1 || team.threads() == 1 { part(0) } else { team.run(&part) }
}

/// Rows that are worth a thread of their own.
const ROWS_MIN: usize = 8;

struct NoStates;

impl StateAccess for NoStates {
    fn row(&self, _: usize, _: u32, _: u32) -> Option<&[f32]> {
        None
    }

    fn row_mut(&mut self, _: usize, _: u32, _: u32) -> Option<&mut [f32]> {
        None
    }
}

/// Runs the CPU twin of an op whose rows stand apart ([`Op::ROWS_APART`]) with some of the rows on each thread. No bit depends on it.
pub(super) fn by_rows<O: Op>(op: &O, call: &mut CpuCall<'_>) -> Result<(), String> {
    let (rows, threads) = (call.rows.len(), call.team.threads());
    if threads == 1 || rows < 2 * ROWS_MIN {
        return sums::wide(|| op.cpu(call));
    }
    let each = rows.div_ceil(threads).max(ROWS_MIN);
    let count = rows.div_ceil(each);
    let mut pieces: Vec<Vec<ColumnsMut<'_>>> = (0..count).map(|_| vec![]).collect();
    for out in call.outs.iter_mut() {
        let width = out.width();
        for (piece, words) in pieces.iter_mut().zip(out.words(rows).chunks_mut((each * width).max(1))) {
            piece.push(ColumnsMut::new(words, width));
        }
    }
    let pieces: Vec<_> = pieces.into_iter().map(|outs| Mutex::new(Some(outs))).collect();
    let faults: Vec<_> = (0..count).map(|_| Mutex::new(Ok(()))).collect();
    let (at, ins, weights, groups, store, team) = (call.rows, call.ins, call.weights, call.groups, call.store, call.team);
    share(team, count, &|chunk, _| {
        let Some(mut outs) = pieces[chunk].lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let start = chunk * each;
        let ins: Vec<Columns<'_>> = ins.iter().map(|input| input.from_row(start)).collect();
        let mut call = CpuCall {
            rows: &at[start..rows.min(start + each)],
            ins: &ins,
            outs: &mut outs,
            weights,
            groups,
            store,
            states: &mut NoStates,
            sampling: &[],
            scratch: &mut vec![],
            team: &Alone,
            fast: None,
        };
        let result = sums::wide(|| op.cpu(&mut call));
        *faults[chunk].lock().unwrap_or_else(PoisonError::into_inner) = result;
    });
    // The first rows' fault, as one thread would have met it.
    faults.into_iter().try_for_each(|fault| fault.into_inner().unwrap_or_else(PoisonError::into_inner))
}
