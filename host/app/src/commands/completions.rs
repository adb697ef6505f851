//! `coli completions`: a script for a shell.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs};

pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "coli", &mut script);
    Ok(super::to_stdout(|out| out.write_all(&script))?)
}
