//! Runs an op's case on the CPU executor, cut into steps as asked.

use std::collections::HashMap;
use std::ops::Range;

use coli_chain::case::How;
use coli_chain::program::OpTable;
use coli_shaders::contract::{Case, Data};

/// Runs the case's rows in steps of these ranges; gives the numbers of each expected port, row after row.
pub fn run(case: &Case, cuts: &[Range<usize>]) -> Result<HashMap<String, Data>, String> {
    coli_chain::case::run(case, &OpTable::library(), cuts).map_err(|error| error.text)
}

/// The same in another mode.
pub fn run_as(case: &Case, cuts: &[Range<usize>], how: How) -> Result<HashMap<String, Data>, String> {
    coli_chain::case::run_as(case, &OpTable::library(), cuts, how).map_err(|error| error.text)
}
