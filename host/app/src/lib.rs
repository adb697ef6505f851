//! The `coli` program as a library: [`engine`] opens a model and steps it, [`commands`] are what a person types, [`cli`] is how.
//!
//! The binaries only call [`run`]; tests use [`engine::Engine`] directly.

/// Writes a line to standard error. Where that is closed, nobody is there to be told: no reason to fail, or, as `eprintln!` does, to panic.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($text)*);
        let _ = writeln!(std::io::stderr(), "coli: {}", coli_base::line::one_line(&text, coli_base::line::LINE_CHARS_MAX));
    }};
}

pub mod cli;
pub mod commands;
pub mod engine;
pub mod inspect;
mod patience;
mod progress;
mod stop;
pub mod sums;
mod version;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use coli_base::{Error, Kind, memory};
use coli_config::Baked;

/// What small allocations take together until a model's large ones come, whose lack is an error of their own. That of a small one is none
/// in Rust, and ends the process.
const START_BYTES: u64 = 16 << 20;

/// Parses the command line, runs the command, and gives the exit code. `baked` is what the build left in the program.
pub fn run(baked: Baked) -> ExitCode {
    stop::outlive_file_limit();
    if let Err(error) = memory::probe(START_BYTES, "start") {
        return fail(&error.into());
    }
    let done = match cli::Cli::try_parse() {
        Ok(cli) => commands::dispatch(&cli, baked),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => commands::print_asked(&error).map_err(Into::into),
            // The best answer to a command that is not finished: printed as it is.
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
            _ => Err(Error::usage(usage_line(&error)).into()),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Says what went wrong, in a line.
fn fail(error: &anyhow::Error) -> ExitCode {
    say!("{error:#}");
    ExitCode::from(exit_code(error))
}

/// What clap says, in one line and without the usage, which `--help` has.
fn usage_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let parts = text.trim_start_matches("error: ").split("\n\n").filter(|part| !part.starts_with("Usage:"));
    parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("; ")
}

/// The kind of the first of our errors in the chain decides; anything else failed while running.
fn exit_code(error: &anyhow::Error) -> u8 {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<Error>()).map_or(Kind::Run, |error| error.kind);
    kind as u8
}
