//! `coli plugins`: every candidate, loaded to see whether it works.

use std::io::Write as _;

use coli_config::Environment;

use crate::cli::PluginsArgs;
use crate::engine;

pub(super) fn run(args: &PluginsArgs, environment: &Environment) -> anyhow::Result<()> {
    let mut plugins = engine::discover_plugins(None, environment)?;
    plugins.verify();
    let listings = plugins.listings();
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&listings)?)?;
        return Ok(());
    }
    for listing in &listings {
        let unknown = || "?".to_string();
        let (id, version) = (listing.id.clone().unwrap_or_else(unknown), listing.version.clone().unwrap_or_else(unknown));
        writeln!(out, "{id:<16} {version:<8} {:<9} {} [{}]", listing.state, listing.reason, listing.manifest)?;
    }
    if listings.is_empty() {
        let home = environment.home_folder()?;
        let folders: Vec<String> = environment.plugin_places(&home).iter().map(|place| place.path.display().to_string()).collect();
        writeln!(out, "no plugins in {}", folders.join(", "))?;
    }
    Ok(())
}
