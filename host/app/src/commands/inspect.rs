//! `coli inspect`: what a stored model is and lacks, for models that are served and for others.

use std::io::{self, Write};

use coli_base::line::one_line;
use coli_base::units::Bytes;
use coli_config::Environment;
use coli_plugin_api::describe::Container;

use crate::cli::InspectArgs;
use crate::engine;
use crate::inspect::{Inspection, inspect};

/// The most characters of a name from a file.
const NAME_CHARS_MAX: usize = 100;

pub(super) fn run(args: &InspectArgs, environment: &Environment) -> anyhow::Result<()> {
    let found = engine::find_model(Some(&args.model), environment)?;
    let survey = coli_store::survey(&found.path)?;
    let plugins = engine::discover_plugins(None, environment)?;
    let inspection = inspect(survey, &plugins);
    if args.json {
        let json = serde_json::to_string_pretty(&inspection)?;
        return Ok(super::to_stdout(|out| writeln!(out, "{json}"))?);
    }
    Ok(super::to_stdout(|out| print(&inspection, out))?)
}

fn print(inspection: &Inspection, out: &mut impl Write) -> io::Result<()> {
    let container = match inspection.container {
        Container::Hf => "safetensors",
        Container::Gguf => "GGUF",
    };
    writeln!(out, "model         {} ({container})", inspection.model)?;
    let architecture = inspection.architecture.as_deref().map_or("unknown".into(), |name| one_line(name, NAME_CHARS_MAX));
    writeln!(out, "architecture  {architecture}")?;
    let rows = inspection.geometry.rows();
    let known: Vec<String> = rows.iter().filter_map(|(name, number)| Some(format!("{name} {}", (*number)?))).collect();
    writeln!(out, "geometry      {}", if known.is_empty() { "unknown".into() } else { known.join(", ") })?;
    print_roles(inspection, out)?;
    match (&inspection.plugin, &inspection.not_served) {
        (Some(plugin), _) => writeln!(out, "served by     plugin {} {}", plugin.id, plugin.version)?,
        (None, Some(why)) => writeln!(out, "not served    {why}")?,
        (None, None) => {}
    }
    if !inspection.unread_types.is_empty() {
        writeln!(out, "not read yet  {}", inspection.unread_types.join(", "))?;
    }
    match inspection.missing.is_empty() {
        true => writeln!(out, "missing       nothing"),
        false => inspection.missing.iter().try_for_each(|what| writeln!(out, "missing       {}", one_line(what, 4 * NAME_CHARS_MAX))),
    }
}

fn print_roles(inspection: &Inspection, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{:<14}  {:>7}  {:>10}  types", "role", "tensors", "bytes")?;
    for figures in &inspection.roles {
        let types: Vec<String> = match figures.types.len() {
            1 => figures.types.keys().cloned().collect(),
            _ => figures.types.iter().map(|(kind, figures)| format!("{kind} {}", Bytes(figures.bytes))).collect(),
        };
        let (tensors, bytes) = (figures.tensors, Bytes(figures.bytes).to_string());
        writeln!(out, "{:<14}  {tensors:>7}  {bytes:>10}  {}", figures.role.words(), types.join(", "))?;
    }
    writeln!(out, "{:<14}  {:>7}  {:>10}", "total", inspection.tensors, Bytes(inspection.bytes).to_string())?;
    match inspection.token_bytes {
        Some(bytes) => writeln!(out, "{:<14}  {:>7}  {:>10}\n", "a token reads", "", Bytes(bytes).to_string()),
        None => writeln!(out, "{:<14}  {:>7}  {:>10}\n", "a token reads", "", "unknown"),
    }
}
