//! What a person types. Each command is one file; what they share is here.

mod bench;
mod completions;
mod config;
mod convert;
mod defaults;
mod generate;
mod inspect;
mod logits;
mod plugins;
mod plugins_dump;
mod plugins_new;
mod plugins_verify;
mod ppl;
mod prompt;
mod run;

use std::io::{ErrorKind, Write as _};

use coli_base::units::Bytes;
use coli_base::{Error, Kind, Result};
use coli_config::{Baked, Environment, Key, Source, Values};
use coli_plugin_api::LogLevel;
use coli_plugins::{Checker, Recall, Request};

use crate::cli::{Cli, Command, ConfigCommand, EvalCommand, ModelArgs, PluginsCommand};
use crate::engine::{self, Engine, Facts, OpenRequest, Prepared, VulkanPlaces};
use crate::progress::Loading;
use crate::stop;

/// Runs the command.
pub fn dispatch(cli: &Cli, baked: Baked) -> anyhow::Result<()> {
    let mut environment = Environment::read(baked)?;
    // A child process is told everything by its arguments, and a settings file that is wrong should not keep a shell from its script.
    if !matches!(cli.command, Command::CheckPlugin { .. } | Command::Completions(_))
        && let Some(path) = environment.settings_file(cli.config.as_deref())
    {
        environment = environment.with_file(&path)?;
    }
    coli_plugins::set_log_level(match cli.verbose {
        0 => LogLevel::Warning,
        1 => LogLevel::Info,
        _ => LogLevel::Debug,
    });
    match &cli.command {
        Command::Run(args) => run::run(args, &environment, cli.verbose),
        Command::Eval(EvalCommand::Logits(args)) => logits::run(args, &environment, cli.verbose),
        Command::Eval(EvalCommand::Ppl(args)) => ppl::run(args, &environment, cli.verbose),
        Command::Bench(args) => bench::run(args, &environment, cli.verbose),
        Command::Inspect(args) => inspect::run(args, &environment),
        Command::Convert(args) => convert::run(args, &environment),
        Command::Plugins(args) => match &args.command {
            None => plugins::run(args, &environment),
            Some(PluginsCommand::New(args)) => plugins_new::run(args),
            Some(PluginsCommand::Dump(args)) => plugins_dump::run(args, &environment),
            Some(PluginsCommand::Verify(args)) => plugins_verify::run(args, &environment),
        },
        Command::Config(ConfigCommand::Explain(args)) => config::explain(args, &environment),
        Command::Completions(args) => completions::run(args),
        Command::CheckPlugin { manifest, library } => {
            let answer = coli_plugins::check_here(manifest, library);
            Ok(to_stdout(|out| writeln!(out, "{answer}"))?)
        }
    }
}

/// Opens plugins' libraries in a child process: this program again.
fn checker(environment: &Environment, recall: Recall) -> Result<Checker> {
    let program = std::env::current_exe().map_err(|error| Error::run(format!("the executable cannot be found: {error}")))?;
    Ok(Checker::new(program, environment.user_cache_folder(), recall))
}

/// Says which file of settings was read.
fn say_settings(environment: &Environment) {
    if let Some(path) = &environment.file {
        say!("settings from {}", path.display());
    }
}

/// The plugin that the command line asks for, else the one of the settings.
fn requested_plugin(given: Option<&Request>, environment: &Environment) -> Option<Request> {
    given.cloned().or_else(|| environment.values.text(Key::ModelPlugin).map(Request::parse))
}

/// Prepares the model that arguments and settings ask for, saying what was chosen and why.
fn prepare_model(args: &ModelArgs, environment: &Environment, verbose: u8) -> Result<Prepared> {
    say_settings(environment);
    let values = args.values().or(&environment.values).or_defaults();
    let request = OpenRequest { vulkan: vulkan_places(&values, environment), ..open_request(&values)? };
    let folder = engine::find_model(args.model.as_deref(), environment)?;
    if folder.demo {
        say!("no model was named, so this is the demo model in {}; name one with --model DIR", folder.path.display());
    }
    let plugin = requested_plugin(args.model_plugin.as_ref(), environment);
    let mut plugins = engine::discover_plugins(plugin.as_ref(), environment)?;
    plugins.check_apart(checker(environment, Recall::All)?);
    if verbose > 0 {
        plugins.log_lines().iter().for_each(|line| say!("{line}"));
    }
    let prepared = engine::prepare(&folder.path, &plugins, &request);
    // What a terminal's Ctrl-C ends as well is the child that opens the plugin: that is no fault of the plugin's.
    stop::check()?;
    let prepared = prepared.map_err(|error| with_source(error, &values))?;
    let facts = prepared.facts();
    let Facts { plugin, plugin_version, device, device_reason, precision, precision_reason, weight_bytes, threads, .. } = facts;
    let kernels = facts.fast.map_or(String::new(), |level| format!(", {} kernels", level.name()));
    let (name, size) = (folder.name(), Bytes(*weight_bytes));
    say!(
        "model {name} ({size}); plugin {plugin} {plugin_version}; device {device} ({device_reason}); \
         precision {precision} ({precision_reason}{kernels}); threads {threads}"
    );
    prepared.notes().iter().for_each(|note| say!("{note}"));
    if verbose > 0 {
        prepared.details().iter().for_each(|line| say!("{line}"));
    }
    Ok(prepared)
}

/// What to do where this many tokens do not fit the context.
fn how_to_fit(tokens: usize, facts: &Facts) -> String {
    match facts.context_max {
        most if tokens > most as usize => format!("fewer of them: this model's context has at most {most}"),
        most => format!("a larger --ctx, of up to {most}"),
    }
}

/// What the settings ask of device, precision and context.
fn open_request(values: &Values) -> Result<OpenRequest> {
    let within = |key: Key| move |error: Error| error.within(values.named(key));
    let request = OpenRequest {
        device: values.text(Key::Device).map(str::parse).transpose().map_err(within(Key::Device))?.unwrap_or_default(),
        precision: values.text(Key::Precision).map(str::parse).transpose().map_err(within(Key::Precision))?.unwrap_or_default(),
        context: values.whole(Key::Ctx).and_then(|positions| u32::try_from(positions).ok()),
        threads: values.whole(Key::Threads).and_then(|threads| u32::try_from(threads).ok()),
        ..OpenRequest::default()
    };
    Ok(request)
}

/// Where Vulkan's loader and kernels may be, and what a device may take.
fn vulkan_places(values: &Values, environment: &Environment) -> VulkanPlaces {
    VulkanPlaces {
        loader: values.path(Key::VkLoader).map(Into::into),
        kernels: values.path(Key::VkShaders).map(Into::into),
        home: environment.home_folder().ok(),
        cache: environment.user_cache_folder().map(|folder| folder.join("pipelines")),
        limit: values.whole(Key::VramLimit).map(|mib| mib << 20),
        ..VulkanPlaces::default()
    }
}

/// The error, and where the request came from that cannot be met, if not from the option that it names.
fn with_source(error: Error, values: &Values) -> Error {
    let named = error.text.starts_with("--device").then_some(Key::Device);
    match named.and_then(|key| values.get(key)) {
        Some((_, source)) if error.kind == Kind::Unmet && *source != Source::CommandLine => error.within(source),
        _ => error,
    }
}

/// Reads the weights with progress.
fn load_model(prepared: Prepared) -> Result<Engine> {
    let loading = Loading::start();
    let engine = prepared.load(&mut |done, total| {
        loading.advance(done, total);
        stop::check()
    })?;
    loading.finish(engine.facts().weight_bytes);
    engine.notes().iter().for_each(|note| say!("{note}"));
    Ok(engine)
}

/// Prints help or version, which clap makes.
pub fn print_asked(asked: &clap::Error) -> Result<()> {
    // It has colours where somebody sees them, and takes the lock by itself.
    asked.print().map_err(|error| lost_output(&error))?;
    to_stdout(|_| Ok(()))
}

/// Writes to standard output; an error says that it was there.
fn to_stdout(write: impl FnOnce(&mut std::io::StdoutLock<'static>) -> std::io::Result<()>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    write(&mut out).and_then(|()| out.flush()).map_err(|error| lost_output(&error))
}

fn lost_output(error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::BrokenPipe => Error::run("standard output: broken pipe: its reader has closed it, so the rest was not written"),
        _ => Error::run(format!("standard output: {error}")),
    }
}
