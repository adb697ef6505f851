//! Fast mode: the rows that a row sees are those of the CPU twin; sums and exponentials are those of [`crate::fast::attend`].

use std::sync::{Mutex, PoisonError};

use super::{Attend, AttendMask, AttendSource};
use crate::contract::{Columns, CpuCall, Fast, RowAt, RowClass, StateAccess, Stored, Team, share};
use crate::fast::Pane;
use crate::fast::attend::{self, Heads, Seen, Source};
use crate::fast::attend_step;
use crate::fast::gemm::Unit;
use crate::fast::product::share_panes;

/// Rows of a prompt that take a head's K and V together.
const ROWS: usize = 64;

/// Rows of a conversation, which follow each other in the step.
struct Conversation<'a> {
    /// The first one's place in the step.
    first: usize,
    rows: &'a [RowAt],
    /// What each row sees of each source.
    seen: Vec<[Seen<'a>; 2]>,
    /// The pages of each source.
    pages: [Vec<Stored<'a>>; 2],
}

pub(super) fn run(op: &Attend, call: &mut CpuCall<'_>, fast: &Fast<'_>) -> Result<(), String> {
    let sinks = if op.params.sink { call.weight(0).decode() } else { vec![] };
    let states = &*call.states;
    let mut all = vec![];
    let mut first = 0;
    for rows in call.rows.chunk_by(|a, b| a.conv == b.conv) {
        all.push(conversation(op, states, call.ins, first, rows)?);
        first += rows.len();
    }
    let mut page_rows = [1; 2];
    (0..op.sources.len()).for_each(|index| page_rows[index] = states.page_rows(index) as usize);
    let of = Of { op, fast, team: call.team, q: call.ins[0], sinks: &sinks, page_rows };
    let width = call.outs[0].width();
    let out: &mut [f32] = bytemuck::cast_slice_mut(call.outs[0].words(call.rows.len()));
    match fast.class {
        RowClass::Prompt => of.prompts(&all, out, width),
        RowClass::Step => of.steps(&all, out, width),
    }
    Ok(())
}

fn conversation<'a>(
    op: &Attend,
    states: &'a dyn StateAccess,
    ins: &[Columns<'a>],
    first: usize,
    rows: &'a [RowAt],
) -> Result<Conversation<'a>, String> {
    let mut seen = vec![];
    let mut ends = [0u32; 2];
    for (row, at) in rows.iter().enumerate() {
        let mut of = [Seen::Rows(0..0), Seen::Rows(0..0)];
        for (index, source) in op.sources.iter().enumerate() {
            let list = source.list.map(|input| ins[input].ints(first + row));
            (of[index], ends[index]) = see(states, (index, source), list, *at, ends[index])?;
        }
        seen.push(of);
    }
    let mut pages = [vec![], vec![]];
    for (index, pages) in pages.iter_mut().enumerate().take(op.sources.len()) {
        let count = ends[index].div_ceil(states.page_rows(index));
        pages.extend((0..count).map(|page| states.page(index, rows[0].conv, page).unwrap_or(Stored::Whole(&[]))));
    }
    Ok(Conversation { first, rows, seen, pages })
}

/// What a row sees of a source, and the end of the rows that have been seen of it so far.
fn see<'a>(
    states: &dyn StateAccess,
    (index, source): (usize, &super::Source),
    list: Option<&'a [i32]>,
    at: RowAt,
    end: u32,
) -> Result<(Seen<'a>, u32), String> {
    let RowAt { conv, pos, .. } = at;
    // Rows whose groups are complete at the row's position; at most 2^32.
    let complete = (u64::from(pos) + 1) / u64::from(source.stride);
    let check = |row: u32| match states.has(index, conv, row) {
        true => Ok(()),
        false => Err(format!("source {index}: row {row} of conversation {conv} was never stored or is gone")),
    };
    let Some(list) = list else {
        let first = if source.mask == AttendMask::Window { complete.saturating_sub(u64::from(source.window)) } else { 0 };
        if first < complete {
            // Rows between two that are stored are stored.
            check(first as u32)?;
            check((complete - 1) as u32)?;
        }
        return Ok((Seen::Rows(first as usize..complete as usize), end.max(complete as u32)));
    };
    let mut last = end;
    for entry in list.iter().filter(|entry| **entry != -1) {
        let row = u32::try_from(*entry).map_err(|_| format!("source {index}: {entry} in a list is neither a row nor -1"))?;
        if u64::from(row) >= complete {
            return Err(format!("source {index}: row {row} in a list is not complete at position {pos}"));
        }
        check(row)?;
        last = last.max(row + 1);
    }
    Ok((Seen::List(list), last))
}

/// What all jobs of a call share.
struct Of<'a> {
    op: &'a Attend,
    fast: &'a Fast<'a>,
    team: &'a dyn Team,
    /// Query rows.
    q: Columns<'a>,
    sinks: &'a [f32],
    /// Rows of a page of each source.
    page_rows: [usize; 2],
}

impl Of<'_> {
    fn heads(&self) -> Heads {
        let params = &self.op.params;
        let heads = (params.heads / params.kv_heads) as usize;
        Heads { heads, k_width: params.k_width as usize, v_width: params.v_width as usize, scale: params.scale }
    }

    /// The sinks of a K/V head's heads.
    fn sinks(&self, kv_head: usize) -> &[f32] {
        let heads = self.heads().heads;
        self.sinks.get(kv_head * heads..(kv_head + 1) * heads).unwrap_or_default()
    }

    /// The sources as a K/V head sees them.
    fn sources<'c>(&self, of: &'c Conversation<'_>, kv_head: usize) -> Vec<Source<'c>> {
        let (params, heads) = (&self.op.params, self.heads());
        let source = |(index, of_source): (usize, &AttendSource)| Source {
            pages: &of.pages[index],
            page: self.page_rows[index],
            width: self.op.sources[index].width,
            k_col: of_source.k_col0 as usize + kv_head * heads.k_width,
            v_col: of_source.v_col0 as usize + kv_head * heads.v_width,
        };
        [params.first, params.second].iter().take(self.op.sources.len()).enumerate().map(source).collect()
    }

    /// A K/V head and some rows of a conversation make a job.
    fn prompts(&self, all: &[Conversation<'_>], out: &mut [f32], width: usize) {
        let heads = self.heads();
        let (mut panes, mut jobs) = (vec![], vec![]);
        let mut rest = out;
        for (index, conversation) in all.iter().enumerate() {
            for start in (0..conversation.rows.len()).step_by(ROWS) {
                let rows = start..conversation.rows.len().min(start + ROWS);
                let (own, others) = rest.split_at_mut(rows.len() * width);
                rest = others;
                for (kv_head, pane) in Pane::new(own, width).split_every(heads.heads * heads.v_width).enumerate() {
                    panes.push(pane);
                    jobs.push((index, rows.clone(), kv_head));
                }
            }
        }
        share_panes(self.team, panes.into_iter(), &|job, mut pane, thread| {
            let (conversation, rows, kv_head) = &jobs[job];
            let conversation = &all[*conversation];
            let columns = kv_head * heads.heads * heads.k_width;
            let row = |row: usize| attend::Row {
                q: &self.q.row(conversation.first + row)[columns..][..heads.heads * heads.k_width],
                seen: conversation.seen[row].clone(),
            };
            let rows: Vec<attend::Row<'_>> = rows.clone().map(row).collect();
            let sources = self.sources(conversation, *kv_head);
            let own = &mut *self.fast.scratch.thread(thread);
            attend::prompt(self.fast.level, &heads, &sources, &rows, self.sinks(*kv_head), &mut own.attend, &mut pane);
        });
    }

    /// Some K/V heads and a part of what a row sees make a job; the parts of a row are joined when all are there. Heads that run together
    /// read whole rows, so they are cut only as far as threads would stand idle otherwise.
    fn steps(&self, all: &[Conversation<'_>], out: &mut [f32], width: usize) {
        let mut jobs = vec![];
        let mut rows = vec![];
        for (index, conversation) in all.iter().enumerate() {
            for (row, seen) in conversation.seen.iter().enumerate() {
                let first = jobs.len();
                jobs.extend(attend_step::parts(&seen[..self.op.sources.len()]).map(|part| (index, row, part)));
                rows.push((conversation.first + row, first..jobs.len()));
            }
        }
        let kv_heads = self.op.params.kv_heads as usize;
        let cuts = (2 * self.team.threads()).div_ceil(jobs.len().max(1));
        let most = kv_heads.div_ceil(cuts.clamp(1, kv_heads));
        let each = (1..=most).rev().find(|each| kv_heads.is_multiple_of(*each)).unwrap_or(1);
        let heads = Heads { heads: each * self.heads().heads, ..self.heads() };
        let (units, q_width, y_width) = (attend_step::units(&heads), heads.heads * heads.k_width, heads.heads * heads.v_width);
        // Of each group of heads, the parts of all rows.
        let mut results = vec![Unit::ZERO; kv_heads / each * jobs.len() * units];
        let places: Vec<_> = results.chunks_exact_mut(units).map(|place| Mutex::new(Some(place))).collect();
        share(self.team, places.len(), &|place, thread| {
            let (group, (index, row, part)) = (place / jobs.len(), &jobs[place % jobs.len()]);
            let Some(place) = places[place].lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
            let conversation = &all[*index];
            let q = &self.q.row(conversation.first + row)[group * q_width..][..q_width];
            let sources = self.sources(conversation, group * each);
            let own = &mut *self.fast.scratch.thread(thread);
            attend_step::part(self.fast.level, &self.heads(), &sources, (&conversation.seen[*row], part), q, &mut own.attend, place);
        });
        drop(places);
        for group in 0..kv_heads / each {
            let sinks = self.sinks.get(group * heads.heads..(group + 1) * heads.heads).unwrap_or_default();
            for (row, parts) in &rows {
                let parts = (group * jobs.len() + parts.start) * units..(group * jobs.len() + parts.end) * units;
                let to = &mut out[row * width + group * y_width..][..y_width];
                attend_step::join(self.fast.level, &heads, &results[parts], sinks, to);
            }
        }
    }
}
