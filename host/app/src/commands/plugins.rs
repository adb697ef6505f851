//! `coli plugins`: every candidate, loaded to see whether it works.

use std::io::Write as _;

use coli_config::Environment;
use coli_plugins::Recall;

use crate::cli::PluginsArgs;
use crate::engine;

pub(super) fn run(args: &PluginsArgs, environment: &Environment) -> anyhow::Result<()> {
    let mut plugins = engine::discover_plugins(None, environment)?;
    let recall = if args.recheck { Recall::Nothing } else { Recall::Crashes };
    plugins.check_apart(super::checker(environment, recall)?);
    plugins.verify();
    let listings = plugins.listings();
    if args.json {
        let json = serde_json::to_string_pretty(&listings)?;
        return Ok(super::to_stdout(|out| writeln!(out, "{json}"))?);
    }
    let home = environment.home_folder()?;
    let folders = || environment.plugin_places(&home).iter().map(|place| place.path.display().to_string()).collect::<Vec<_>>().join(", ");
    super::to_stdout(|out| {
        for listing in &listings {
            let (id, version) = (listing.id.as_deref().unwrap_or("?"), listing.version.as_deref().unwrap_or("?"));
            writeln!(out, "{id:<16} {version:<8} {:<9} {} [{}]", listing.state, listing.reason, listing.manifest)?;
        }
        if listings.is_empty() { writeln!(out, "no plugins in {}", folders()) } else { Ok(()) }
    })?;
    Ok(())
}
