//! Runs an op's case on the CPU executor, cut into steps as asked.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use coli_chain::program::OpTable;
use coli_chain::state::PAGE_POSITIONS;
use coli_chain::{CpuExecutor, PortSpec, Program, Row, States, Step};
use coli_plugin_api::codec;
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::{Direction, Domain, Ty};
use coli_shaders::contract::{Case, Data};

/// Runs the case's rows in steps of these ranges; gives the numbers of each expected port, row after row.
pub fn run(case: &Case, cuts: &[Range<usize>]) -> Result<HashMap<String, Data>, String> {
    let bytes = codec::encode(&case.recording)?;
    let given = given(case);
    let recordings = [(SegmentName::Layer(0), bytes)];
    let program = Program::build(&case.description, &recordings, &OpTable::library(), &given).map_err(|error| error.text)?;
    let mut states = States::new(&case.description, PAGE_POSITIONS, case.description.context_max);
    let convs = case.rows.iter().map(|row| row.conv + 1).max().unwrap_or(0);
    let convs: Vec<_> = (0..convs).map(|_| states.open()).collect();
    for row in case.rows.iter().rev() {
        // A conversation starts where its first row stands.
        states.commit(convs[row.conv as usize], row.pos);
    }
    let weights = Arc::new(case.weights.clone());
    let rows_max = case.rows.len().max(1);
    let mut executor = CpuExecutor::new(Arc::new(program), weights, rows_max, rows_max).map_err(|error| error.text)?;
    let mut results: HashMap<String, Data> = HashMap::new();
    for cut in cuts {
        let rows = case.rows[cut.clone()].iter().enumerate().map(|(index, at)| {
            let wanted = case.outs.contains(&((cut.start + index) as u32));
            Row::text(convs[at.conv as usize], at.pos, case.tokens[cut.start + index] as u32, wanted.then_some(case.sampling))
        });
        let step = Step { rows: rows.collect() };
        let inputs: Vec<Data> = given.iter().zip(&case.inputs).map(|(spec, (_, data))| slice(data, spec.width as usize, cut)).collect();
        let mut observe = |ports: &coli_chain::cpu::Ports<'_>| {
            for expected in &case.expected {
                let (columns, rows) = ports.get(&expected.port).unwrap_or_else(|| panic!("no port {}", expected.port));
                let entry = results.entry(expected.port.clone());
                match &expected.data {
                    Data::F32(_) => extend_f32(entry.or_insert(Data::F32(vec![])), (0..rows).flat_map(|row| columns.row(row).to_vec())),
                    Data::I32(_) => extend_i32(entry.or_insert(Data::I32(vec![])), (0..rows).flat_map(|row| columns.ints(row).to_vec())),
                }
            }
            Ok(())
        };
        executor.run_given(&mut states, &step, &inputs, &mut observe).map_err(|error| error.text)?;
    }
    Ok(results)
}

/// The ports that the case gives, in the order of its inputs.
fn given(case: &Case) -> Vec<PortSpec> {
    let spec = |name: &String| {
        let port = case.recording.ports.iter().find(|port| port.direction == Direction::In && port.name == *name);
        let value = case.recording.values[port.unwrap_or_else(|| panic!("no port {name}")).value.0 as usize];
        let rows = match case.recording.domains[usize::from(value.domain.0)] {
            Domain::Outs => coli_chain::program::Rows::Outs,
            _ => coli_chain::program::Rows::Tokens,
        };
        PortSpec { name: name.clone(), rows, ty: value.ty, width: value.width }
    };
    let specs: Vec<PortSpec> = case.inputs.iter().map(|(name, _)| spec(name)).collect();
    for (spec, (_, data)) in specs.iter().zip(&case.inputs) {
        assert_eq!(spec.ty == Ty::F32, matches!(data, Data::F32(_)), "type of {}", spec.name);
    }
    specs
}

fn slice(data: &Data, width: usize, rows: &Range<usize>) -> Data {
    let range = rows.start * width..rows.end * width;
    match data {
        Data::F32(numbers) => Data::F32(numbers[range].to_vec()),
        Data::I32(ids) => Data::I32(ids[range].to_vec()),
    }
}

fn extend_f32(data: &mut Data, numbers: impl Iterator<Item = f32>) {
    if let Data::F32(all) = data {
        all.extend(numbers);
    }
}

fn extend_i32(data: &mut Data, ids: impl Iterator<Item = i32>) {
    if let Data::I32(all) = data {
        all.extend(ids);
    }
}
