//! What a person types. Each command is one file; what they share is here.

mod logits;
mod plugins;
mod run;

use std::io::Write as _;

use coli_base::{Error, Result};
use coli_config::Environment;
use coli_plugin_api::LogLevel;

use crate::cli::{Cli, Command, EvalCommand, ModelArgs};
use crate::engine::{self, Engine, Facts, OpenRequest, Prepared};
use crate::progress::Loading;

/// Runs the command.
pub fn dispatch(cli: &Cli) -> anyhow::Result<()> {
    let environment = Environment::read()?;
    coli_plugins::set_log_level(match cli.verbose {
        0 => LogLevel::Warning,
        1 => LogLevel::Info,
        _ => LogLevel::Debug,
    });
    match &cli.command {
        Command::Run(args) => run::run(args, &environment, cli.verbose),
        Command::Eval(EvalCommand::Logits(args)) => logits::run(args, &environment, cli.verbose),
        Command::Plugins(args) => plugins::run(args, &environment),
    }
}

/// Prepares the model that the arguments ask for, saying what was chosen and why.
fn prepare_model(args: &ModelArgs, environment: &Environment, verbose: u8) -> Result<Prepared> {
    let folder = engine::find_model(args.model.as_deref(), environment)?;
    if folder.demo {
        say!("no model was named, so this is the demo model in {}; name one with --model DIR", folder.path.display());
    }
    let plugins = engine::discover_plugins(args.model_plugin.as_ref(), environment)?;
    if verbose > 0 {
        plugins.log_lines().iter().for_each(|line| say!("{line}"));
    }
    let request = OpenRequest { device: args.device.clone(), precision: args.precision, context: args.ctx };
    let prepared = engine::prepare(&folder.path, &plugins, &request)?;
    let Facts { plugin, plugin_version, device, device_reason, precision, precision_reason, .. } = prepared.facts();
    say!("plugin {plugin} {plugin_version}; device {device} ({device_reason}); precision {precision} ({precision_reason})");
    prepared.notes().iter().for_each(|note| say!("{note}"));
    Ok(prepared)
}

/// Reads the weights with progress.
fn load_model(prepared: Prepared) -> Result<Engine> {
    let loading = Loading::start();
    let engine = prepared.load(&mut |done, total| loading.advance(done, total))?;
    loading.finish(engine.facts().weight_bytes);
    Ok(engine)
}

/// Writes to standard output; an error says that it was there.
fn to_stdout(write: impl FnOnce(&mut std::io::StdoutLock<'static>) -> std::io::Result<()>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    write(&mut out).and_then(|()| out.flush()).map_err(|error| Error::run(format!("standard output: {error}")))
}
