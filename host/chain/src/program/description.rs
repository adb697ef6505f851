//! Rules of a description that hold whatever the segments record.

use std::collections::HashSet;

use coli_plugin_api::describe::{Description, ExpertGroup, Keep, Residency, SegmentName, State, StateKind, Weight};
use coli_plugin_api::program::StateId;

/// Numbers a row of a value, a state or a matrix; the largest known vocabulary is an eighth of it.
pub(super) const WIDTH_MAX: u32 = 1 << 21;
/// Positions of a conversation.
const CONTEXT_MAX: u32 = 1 << 26;
/// Numbers of an accumulator; the largest known one is a fortieth of it.
const ACCUMULATOR_MAX: u64 = 1 << 26;
/// Layers, and so segments of each kind; the deepest known model has 93.
const SEGMENTS_MAX: usize = 4096;

pub(super) fn check(description: &Description) -> Result<(), String> {
    in_range("context_max", description.context_max, CONTEXT_MAX)?;
    in_range("vocab", description.vocab, WIDTH_MAX)?;
    segments(&description.segments)?;
    for (index, weight) in description.weights.iter().enumerate() {
        self::weight(weight).map_err(|fault| format!("weight {index} `{}`: {fault}", shown(&weight.role)))?;
    }
    let known: HashSet<SegmentName> = description.segments.iter().copied().collect();
    for (index, state) in description.states.iter().enumerate() {
        self::state(state, &known).map_err(|fault| format!("state {index} `{}`: {fault}", shown(&state.role)))?;
    }
    for (index, group) in description.groups.iter().enumerate() {
        self::group(group).map_err(|fault| format!("group {index} `{}`: {fault}", shown(&group.role)))?;
    }
    Ok(())
}

/// Ascending order of names is the order of a step: embed, the layers, head, draft heads.
fn segments(segments: &[SegmentName]) -> Result<(), String> {
    if segments.is_empty() || segments.len() > SEGMENTS_MAX {
        return Err(format!("{} segments, expected 1 to {SEGMENTS_MAX}", segments.len()));
    }
    if let Some(pair) = segments.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("segment `{}` comes after `{}`", pair[1], pair[0]));
    }
    let (mut layer, mut draft) = (0, 0);
    for name in segments {
        match name {
            SegmentName::Embed | SegmentName::Head => {}
            SegmentName::Layer(index) if *index == layer => layer += 1,
            SegmentName::Layer(index) => return Err(format!("segment `layer.{index}` where `layer.{layer}` is expected")),
            SegmentName::Draft(index) if *index == draft => draft += 1,
            SegmentName::Draft(index) => return Err(format!("segment `draft.{index}` where `draft.{draft}` is expected")),
            other => return Err(format!("segments of the kind of `{other}` are not implemented")),
        }
    }
    Ok(())
}

fn weight(weight: &Weight) -> Result<(), String> {
    if !(1..=2).contains(&weight.shape.len()) {
        return Err(format!("{} dimensions, expected 1 or 2", weight.shape.len()));
    }
    let rest = if weight.table.is_some() { &weight.shape[1..] } else { &weight.shape[..] };
    rest.iter().try_for_each(|len| in_range("a dimension", *len, WIDTH_MAX))?;
    // A table's rows are named by ids.
    in_range("rows of a table", weight.shape[0], i32::MAX as u32)?;
    if weight.table == Some(Residency::Disk) {
        return Err("tables that stay on disk are not implemented".into());
    }
    Ok(())
}

fn state(state: &State, segments: &HashSet<SegmentName>) -> Result<(), String> {
    // Draft heads are left out where they are not wanted; their states stay, since ids are positions.
    if !segments.contains(&state.owner) && !matches!(state.owner, SegmentName::Draft(_)) {
        return Err(format!("its owner `{}` is not a segment", state.owner));
    }
    match &state.kind {
        StateKind::Rows { parts, stride, keep } => {
            if parts.is_empty() {
                return Err("its rows have no parts".into());
            }
            parts.iter().try_for_each(|part| in_range("a part's width", part.width, WIDTH_MAX))?;
            in_range("its stride", *stride, CONTEXT_MAX)?;
            match keep {
                Keep::All => Ok(()),
                Keep::Last(_) if state.shared => Err("a shared state keeps all its rows".into()),
                Keep::Last(n) => in_range("the number of positions it keeps", *n, CONTEXT_MAX),
            }
        }
        StateKind::Accumulator { .. } if state.shared => Err("an accumulator cannot be shared".into()),
        StateKind::Accumulator { shape } => accumulator(shape),
    }
}

fn accumulator(shape: &[u32]) -> Result<(), String> {
    if !(1..=4).contains(&shape.len()) {
        return Err(format!("{} dimensions, expected 1 to 4", shape.len()));
    }
    shape.iter().try_for_each(|len| in_range("a dimension", *len, WIDTH_MAX))?;
    let numbers = shape.iter().fold(1u64, |numbers, len| numbers.saturating_mul(u64::from(*len)));
    if numbers > ACCUMULATOR_MAX { Err(format!("{numbers} numbers, expected at most {ACCUMULATOR_MAX}")) } else { Ok(()) }
}

/// Every accumulator is advanced by an op: executors count its rows.
pub(super) fn all_advanced(description: &Description, written: &HashSet<StateId>) -> Result<(), String> {
    let mut states = description.states.iter().enumerate();
    let idle = states.find(|(index, state)| {
        let advanced = written.contains(&StateId(*index as u32)) || !description.segments.contains(&state.owner);
        matches!(state.kind, StateKind::Accumulator { .. }) && !advanced
    });
    match idle {
        Some((index, state)) => Err(format!("state {index} `{}`: no op advances this accumulator", shown(&state.role))),
        None => Ok(()),
    }
}

fn group(group: &ExpertGroup) -> Result<(), String> {
    in_range("count", group.count, 1 << 16)?;
    in_range("width", group.width, WIDTH_MAX)?;
    in_range("hidden", group.hidden, WIDTH_MAX)?;
    if group.layers.is_empty() || group.layers.len() > SEGMENTS_MAX {
        return Err(format!("{} layers, expected 1 to {SEGMENTS_MAX}", group.layers.len()));
    }
    Ok(())
}

fn in_range(what: &str, value: u32, max: u32) -> Result<(), String> {
    if (1..=max).contains(&value) { Ok(()) } else { Err(format!("{what} is {value}, expected 1 to {max}")) }
}

/// A role as an error prints it, whatever the plugin wrote there.
pub(super) fn shown(role: &str) -> String {
    role.chars().filter(|c| !c.is_control()).take(64).collect()
}
