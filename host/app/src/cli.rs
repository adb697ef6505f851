//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use coli_place::device::DeviceRequest;
use coli_place::precision::PrecisionRequest;
use coli_plugins::Request;

/// Runs Mixture-of-Experts language models that are larger than memory.
#[derive(Debug, Parser)]
#[command(
    name = "coli",
    version,
    about,
    after_help = "Examples:\n  coli run \"Emma was\"\n  coli run --model DIR --temp 0 \"Once\"\n  coli plugins"
)]
pub struct Cli {
    /// Say more: -v tells which plugins were accepted or refused and why, -vv what plugins log
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Continue a text
    Run(RunArgs),
    /// Compute numbers to compare with
    #[command(subcommand)]
    Eval(EvalCommand),
    /// List the plugins, and load each to see whether it works
    Plugins(PluginsArgs),
}

/// Which model runs, and how.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// Folder with config.json and *.safetensors [default: COLI_MODEL, else the demo model]
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Plugin by name, or by path: its .plugin.toml, its folder, or its library [default: the one that serves the model]
    #[arg(long, value_name = "NAME|PATH", value_parser = |text: &str| Ok::<_, std::convert::Infallible>(Request::parse(text)))]
    pub model_plugin: Option<Request>,
    /// auto, cpu, vulkan, a device's number or its name
    #[arg(long, default_value = "auto")]
    pub device: DeviceRequest,
    /// auto, exact (f32 arithmetic in one order) or fast
    #[arg(long, default_value = "auto")]
    pub precision: PrecisionRequest,
    /// Positions of the context [default: the model's, at most 4096]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub ctx: Option<u32>,
}

/// `coli run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Only the text goes to standard output; everything else to standard error.\n\nExamples:\n  coli run \"Emma was\"\n  coli run --temp 0 -n 32 --json \"My dear\""
)]
pub struct RunArgs {
    /// The text to continue
    pub prompt: Option<String>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Temperature; 0 takes the most probable token
    #[arg(long, value_name = "T", default_value_t = 0.8, value_parser = temperature, allow_negative_numbers = true)]
    pub temp: f32,
    /// Draw among the K most probable tokens; 0 is all
    #[arg(long, value_name = "K", default_value_t = 0, allow_negative_numbers = true)]
    pub top_k: u32,
    /// Draw among the most probable tokens that together reach P
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = top_p, allow_negative_numbers = true)]
    pub top_p: f32,
    /// Key of the draws; the same seed gives the same text [default: random]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// The most tokens to generate
    #[arg(short = 'n', long = "tokens", value_name = "N", default_value_t = 256, allow_negative_numbers = true)]
    pub tokens: u32,
    /// Print one JSON object at the end instead of the text
    #[arg(long)]
    pub json: bool,
}

/// `coli eval`.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  coli eval logits --model DIR --ids 1,238,6 --out logits.safetensors")]
pub enum EvalCommand {
    /// The scores of every token after each of the given ones
    Logits(LogitsArgs),
}

/// `coli eval logits`.
#[derive(Debug, Args)]
#[command(after_help = "Needs no tokenizer.\n\nExample:\n  coli eval logits --model DIR --ids 1,238,6 --out logits.safetensors")]
pub struct LogitsArgs {
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Token ids, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',', required = true, allow_negative_numbers = true)]
    pub ids: Vec<u32>,
    /// Safetensors file to write: tensor `logits`, f32 [T, vocab]; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write `hidden.0` (embeddings) to `hidden.N` (after the final norm)
    #[arg(long, requires = "out")]
    pub layers: bool,
}

/// `coli plugins`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  coli plugins\n  coli plugins --json")]
pub struct PluginsArgs {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

fn temperature(text: &str) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "expected a number".to_string())?;
    if value.is_finite() && (0.0..=100.0).contains(&value) { Ok(value) } else { Err("expected 0 to 100".into()) }
}

fn top_p(text: &str) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "expected a number".to_string())?;
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err("expected more than 0 and at most 1".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn numbers_out_of_range_are_usage_errors() {
        for args in [["--temp", "-1"], ["--temp", "nan"], ["--temp", "inf"], ["--top-p", "0"], ["--top-p", "1.1"], ["--device", ""]] {
            let error = Cli::try_parse_from(["coli", "run", args[0], args[1], "x"]).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{args:?}");
        }
    }
}
