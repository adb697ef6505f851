//! What `attend@1` checks before it runs.

use coli_plugin_api::describe::Keep;
use coli_plugin_api::program::{Access, Ty};

use super::{AttendKind, AttendMask, AttendParams, AttendSource, Source};
use crate::contract::{OpFacts, facts};

/// Checks everything; gives the sources.
pub(super) fn sources(params: &AttendParams, facts: &OpFacts<'_>) -> Result<Vec<Source>, String> {
    built(&params.first)?;
    let mut sources = vec![&params.first];
    if params.second.kind != AttendKind::None {
        built(&params.second).map_err(|fault| format!("second source: {fault}"))?;
        sources.push(&params.second);
    } else if params.second != AttendSource::NONE {
        return Err("parameter `second`: numbers for a source of kind none".into());
    }
    let lists = sources.iter().filter(|source| source.kind == AttendKind::List).count();
    let sinks = usize::from(params.sink);
    facts.counts(1 + lists..=1 + lists, 1, sinks..=sinks, sources.len(), 0)?;
    facts.one_domain()?;
    widths(params, facts)?;
    let mut next_list = 1;
    let prepare = |(index, source): (usize, &&AttendSource)| {
        let (stride, width) = state(index, source, params, facts)?;
        let list = (source.kind == AttendKind::List).then_some(next_list);
        if let Some(input) = list {
            facts.input(input, Ty::I32)?;
            next_list += 1;
        }
        Ok(Source { mask: source.mask, window: source.window, stride, width, list })
    };
    sources.iter().enumerate().map(prepare).collect()
}

/// Refuses a source that no kernel has, and a mask that is none of the source's.
fn built(source: &AttendSource) -> Result<(), String> {
    let mask = source.mask.text();
    match (source.kind, source.mask) {
        (AttendKind::None | AttendKind::Values, _) => return facts::not_implemented(format!("source {}", source.kind.text())),
        (AttendKind::Rows, AttendMask::Causal | AttendMask::Window | AttendMask::Complete) | (AttendKind::List, AttendMask::All) => {}
        (AttendKind::Rows, AttendMask::Distance | AttendMask::All) => {
            return facts::not_implemented(format!("source rows with mask {mask}"));
        }
        (AttendKind::List, _) => return Err(format!("parameter `mask`: {mask} with source list, expected all: the list is the mask")),
    }
    if (source.mask == AttendMask::Window) != (source.window != 0) {
        return Err(format!("parameter `window`: {} with mask {mask}", source.window));
    }
    Ok(())
}

/// Checks what does not depend on the sources.
fn widths(params: &AttendParams, facts: &OpFacts<'_>) -> Result<(), String> {
    let (heads, kv_heads) = (u64::from(params.heads), u64::from(params.kv_heads));
    if !heads.is_multiple_of(kv_heads) {
        return Err(format!("parameter `kv_heads`: {kv_heads} does not divide {heads} heads"));
    }
    facts::expect("input 0: width", u64::from(facts.input(0, Ty::F32)?.width), heads * u64::from(params.k_width))?;
    facts.output(0, Ty::F32, heads * u64::from(params.v_width))?;
    if params.sink {
        facts.vector(0, heads)?;
    }
    Ok(())
}

/// Checks a source against its state; gives the state's stride and the numbers of its rows.
fn state(index: usize, source: &AttendSource, params: &AttendParams, facts: &OpFacts<'_>) -> Result<(u32, usize), String> {
    let (parts, stride, keep) = facts.rows_state(index, Access::Read)?;
    let mask = match source.kind {
        AttendKind::List => "a list".to_string(),
        _ => format!("mask {}", source.mask.text()),
    };
    if stride == 0 {
        return Err(format!("state {index}: stride 0, expected at least 1"));
    }
    if matches!(source.mask, AttendMask::Causal | AttendMask::Window) && stride != 1 {
        return Err(format!("state {index}: stride {stride} with {mask}, expected 1"));
    }
    match keep {
        Keep::All => {}
        Keep::Last(n) if source.mask != AttendMask::Window => {
            return Err(format!("state {index}: keeps the last {n} with {mask}, which sees all"));
        }
        Keep::Last(n) if n < source.window - 1 => {
            return Err(format!(
                "state {index}: keeps the last {n} with a window of {}, expected at least {}",
                source.window,
                source.window - 1
            ));
        }
        Keep::Last(_) => {}
    }
    let row: u64 = parts.iter().map(|part| u64::from(part.width)).sum();
    for (what, col0, width) in [("K", source.k_col0, params.k_width), ("V", source.v_col0, params.v_width)] {
        let end = u64::from(col0) + u64::from(params.kv_heads) * u64::from(width);
        if end > row {
            return Err(format!("{what}: columns {col0}..{end} of a state row of {row}, state {index}"));
        }
    }
    Ok((stride, row as usize))
}
