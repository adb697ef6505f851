//! What a person types. Each command is one file; what they share is here.

mod logits;
mod plugins;
mod run;

use coli_base::Result;
use coli_config::Environment;
use coli_plugin_api::LogLevel;

use crate::cli::{Cli, Command, EvalCommand, ModelArgs};
use crate::engine::{self, Facts, OpenRequest, Opened};
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

/// Opens the model that the arguments ask for, saying what was chosen and why.
fn open_model(args: &ModelArgs, environment: &Environment, verbose: u8) -> Result<Opened> {
    let folder = engine::find_model(args.model.as_deref(), environment)?;
    if folder.demo {
        eprintln!("coli: no model was named, so this is the demo model in {}; name one with --model DIR", folder.path.display());
    }
    let plugins = engine::discover_plugins(args.model_plugin.as_ref(), environment)?;
    if verbose > 0 {
        plugins.log_lines().iter().for_each(|line| eprintln!("coli: {line}"));
    }
    let request = OpenRequest { device: args.device.clone(), precision: args.precision, context: args.ctx };
    let mut loading = None;
    let opened = engine::open(&folder.path, &plugins, &request, &mut |facts| announce(facts), &mut |done, total| {
        loading.get_or_insert_with(Loading::start).advance(done, total);
    });
    let opened = opened?;
    if let Some(loading) = loading {
        loading.finish(opened.engine.facts().weight_bytes);
    }
    if let Some(note) = &opened.note {
        eprintln!("coli: {note}");
    }
    Ok(opened)
}

fn announce(facts: &Facts) {
    let Facts { plugin, plugin_version, device, device_reason, precision, precision_reason, .. } = facts;
    eprintln!("coli: plugin {plugin} {plugin_version}; device {device} ({device_reason}); precision {precision} ({precision_reason})");
}
