//! The `coli` program as a library: [`engine`] opens a model and steps it, [`commands`] are what a person types, [`cli`] is how.
//!
//! The binary only calls [`run`]; tests use [`engine::Engine`] directly.

pub mod cli;
pub mod commands;
pub mod engine;
mod progress;
mod stop;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use coli_base::{Error, Kind};

/// Parses the command line, runs the command, and gives the exit code.
pub fn run() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::dispatch(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is closed, nobody is there to be told.
            let _ = writeln!(std::io::stderr(), "coli: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

/// The kind of the first of our errors in the chain decides; anything else failed while running.
fn exit_code(error: &anyhow::Error) -> u8 {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<Error>()).map_or(Kind::Run, |error| error.kind);
    kind as u8
}
