//! `coli convert`: a model's folder anew, with matrices in smaller formats.
//!
//! Which tensors those are follows from what the plugin describes and records, so that a new plugin needs nothing for it: experts' matrices
//! are those of the description's groups, dense ones those that recordings multiply rows with or look rows up in.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use coli_base::units::Bytes;
use coli_base::{Error, Kind, Result};
use coli_config::Environment;
use coli_plugin_api::codec;
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{GroupId, OpRecord, WeightId};
use coli_plugins::Recall;
use coli_shaders::ops::matmul::MatmulParams;
use coli_store::convert::{Conversion, Event, Figure, Folder, Options, Roles};
use coli_store::{Checkpoint, Plan};
use serde_json::{Value, json};

use crate::cli::ConvertArgs;
use crate::engine::{self, Described};
use crate::progress::Loading;
use crate::stop;

/// Names that a line has before it says how many more there are.
const NAMES_MAX: usize = 5;

pub(super) fn run(args: &ConvertArgs, environment: &Environment) -> anyhow::Result<()> {
    stop::install();
    let start = Instant::now();
    super::say_settings(environment);
    let from = engine::find_model(Some(&args.from), environment)?;
    check_folder(&from.path)?;
    let (plugin, checkpoint, roles) = read(args, environment, &from.path)?;
    let conversion = Conversion::plan(&checkpoint, &roles, Options { experts: args.experts, dense: args.dense })?;
    // Its files are opened once more, one at a time.
    drop(checkpoint);
    let folder = conversion.open(&args.to).map_err(|error| error.within("--to"))?;
    announce(args, &conversion, &folder);
    let found = folder.found();
    work(&conversion, folder).map_err(|error| match error.kind {
        Kind::Interrupted | Kind::Terminated | Kind::HungUp => {
            Error::new(error.kind, format!("{}; what is finished stays, and the same command goes on with it", error.text))
        }
        _ => error,
    })?;
    if args.json {
        let summary = summary(args, &conversion, &plugin, found, start.elapsed().as_secs_f64());
        super::to_stdout(|out| writeln!(out, "{summary}"))?;
    } else {
        say!("converted in {:.1} s; it is a model to run: --model {}", start.elapsed().as_secs_f64(), args.to.display());
    }
    Ok(())
}

/// A GGUF file is refused before a plugin is asked.
fn check_folder(path: &Path) -> Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "--from: `{}` is a file, and only a folder with config.json and *.safetensors can be converted; the weights of a GGUF file are in \
         formats of its own already: run it as it is, with --model, or convert the folder that it was made of",
        path.display()
    )))
}

/// The plugin's id, the stored model, and what its tensors are for.
fn read(args: &ConvertArgs, environment: &Environment, from: &Path) -> Result<(String, Checkpoint, Roles)> {
    let plugin = super::requested_plugin(args.model_plugin.as_ref(), environment);
    let mut plugins = engine::discover_plugins(plugin.as_ref(), environment)?;
    plugins.check_apart(super::checker(environment, Recall::All)?);
    let described = engine::describe(from, &plugins);
    // As in other commands: the child that opens the plugin gets the terminal's Ctrl-C as well.
    stop::check()?;
    let described = described?;
    let uses = Uses::of(&described)?;
    let Described { checkpoint, model, description, .. } = described;
    // A model that lacks something is refused before hours are spent on it. Draft heads need not be there.
    Plan::of(&checkpoint, &description, |id| uses.weights.contains(&id), |id| uses.groups.contains(&id))?;
    let roles = Roles::of(&checkpoint, &description, |id| uses.encodable(id));
    Ok((model.id().to_owned(), checkpoint, roles))
}

/// How recordings use weights.
#[derive(Default)]
struct Uses {
    /// Weights and groups of all segments but those of draft heads.
    weights: HashSet<WeightId>,
    groups: HashSet<GroupId>,
    /// Weights that are a matrix of a product, or a table, somewhere.
    matrices: HashSet<WeightId>,
    /// Weights that are something else somewhere.
    others: HashSet<WeightId>,
}

impl Uses {
    fn of(described: &Described<'_>) -> Result<Self> {
        let within =
            |name: SegmentName, fault: String| Error::refused(fault).within(name).within(format!("plugin {}", described.model.id()));
        let mut uses = Self::default();
        for (name, bytes) in engine::record_all(&described.model, &described.description)? {
            let recording = codec::decode(&bytes).map_err(|fault| within(name, fault))?;
            let drafted = matches!(name, SegmentName::Draft(_) | SegmentName::DraftFeed(_));
            for op in &recording.ops {
                uses.note(op).map_err(|fault| within(name, fault))?;
                if !drafted {
                    uses.weights.extend(&op.weights);
                    uses.groups.extend(&op.groups);
                }
            }
        }
        Ok(uses)
    }

    fn note(&mut self, op: &OpRecord) -> std::result::Result<(), String> {
        let encodable = match op.name.as_str() {
            // Routers and decays say so themselves. A bias is a vector, which is never encoded.
            "matmul@1" => !MatmulParams::decode(&op.params)?.exact,
            "matmul_heads@1" | "gather@1" => true,
            _ => false,
        };
        if encodable {
            self.matrices.extend(&op.weights)
        } else {
            self.others.extend(&op.weights)
        }
        Ok(())
    }

    fn encodable(&self, id: WeightId) -> bool {
        self.matrices.contains(&id) && !self.others.contains(&id)
    }
}

fn announce(args: &ConvertArgs, conversion: &Conversion, folder: &Folder<'_>) {
    let figures = conversion.figures();
    let words = |what: &str, figure: &Figure, choice: String| {
        format!("{} {what} to {choice}, {} to {}", figure.tensors, Bytes(figure.before), Bytes(figure.after))
    };
    let experts = words("tensors of experts", &figures.experts, args.experts.to_string());
    let dense = words("dense ones", &figures.dense, args.dense.to_string());
    let (kept, unused) = (&figures.kept, &figures.unused);
    say!("converting {experts}; {dense}; {} more are copied, {}", kept.tensors, Bytes(kept.before));
    if unused.tensors > 0 {
        say!("converting copies {} tensors that the plugin does not use as well, {}", unused.tensors, Bytes(unused.before));
    }
    let free = folder.free().map_or(String::new(), |free| format!(" of {} that are free", Bytes(free)));
    say!("converting into {}, which takes {}{free}", args.to.display(), Bytes(conversion.bytes()));
    if let Some(names) = listed(conversion.left_out()) {
        say!("converting leaves out {names}");
    }
    if folder.found() > 0 {
        say!("converting goes on: {} of {} files are finished", folder.found(), conversion.shards());
    }
}

/// A few names, and how many more there are.
fn listed(names: &[String]) -> Option<String> {
    let more = names.len().saturating_sub(NAMES_MAX);
    let mut words = names.iter().take(NAMES_MAX).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if more > 0 {
        words.push_str(&format!(" and {more} more"));
    }
    (!names.is_empty()).then_some(words)
}

fn work(conversion: &Conversion, folder: Folder<'_>) -> Result<()> {
    let progress = Loading::named("converting");
    let (mut finished, count) = (folder.found(), conversion.shards());
    folder.run(&mut |event| {
        match event {
            Event::Advanced { done, total } => progress.advance(done, total),
            Event::Wrote { name, bytes } => {
                finished += 1;
                progress.above(|| say!("wrote {}, {} ({finished} of {count})", name.display(), Bytes(bytes)));
            }
        }
        stop::check()
    })?;
    progress.clear();
    Ok(())
}

fn summary(args: &ConvertArgs, conversion: &Conversion, plugin: &str, found: usize, seconds: f64) -> Value {
    let figures = conversion.figures();
    let figure = |figure: &Figure| json!({"tensors": figure.tensors, "bytes_before": figure.before, "bytes_after": figure.after});
    json!({
        "from": args.from.display().to_string(),
        "to": args.to.display().to_string(),
        "plugin": plugin,
        "experts": args.experts.to_string(),
        "dense": args.dense.to_string(),
        "files": conversion.shards(),
        "files_found": found,
        "bytes": conversion.bytes(),
        "tensors": {
            "experts": figure(&figures.experts),
            "dense": figure(&figures.dense),
            "kept": figure(&figures.kept),
            "unused": figure(&figures.unused),
        },
        "left_out": conversion.left_out(),
        "seconds": seconds,
    })
}
