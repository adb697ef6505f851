//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use coli_config::{Key, Setting, Source, Value, Values};
use coli_place::device::DeviceRequest;
use coli_place::precision::PrecisionRequest;
use coli_plugin_api::describe::SegmentName;
use coli_plugins::Request;
use coli_store::convert::Choice;

/// The program's words.
#[derive(Debug, Parser)]
#[command(
    name = "coli",
    version,
    long_version = crate::version::long(),
    about = "coli runs Mixture-of-Experts language models on your own machine; each architecture is a plugin.\n\
             Try it with the demo model that comes along: coli run \"Emma was\"",
    after_help = "Examples:\n  coli run \"Emma was\"                   continue a text with the demo model\n  \
                  coli run --model DIR --temp 0 \"Once\"   the same with a model of yours, always the best token\n  \
                  coli run --help                       all that `run` can do; every command has such a page\n  \
                  coli plugins                          which architectures there are"
)]
pub struct Cli {
    /// Say more: -v tells which plugins were accepted or refused and why, -vv what plugins log
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// File of settings [default: ./coli.toml, else coli/coli.toml in your configuration folder]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
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
    /// Measure how fast a model runs here
    Bench(BenchArgs),
    /// Show what a stored model is, what serves it and what is missing
    Inspect(InspectArgs),
    /// Write a model's folder anew, with its matrices in smaller formats
    Convert(ConvertArgs),
    /// List the plugins, and load each to see whether it works
    Plugins(PluginsArgs),
    /// Show settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a script that lets a shell complete coli's words
    Completions(CompletionsArgs),
    /// Open a plugin's library and print what became of it, as JSON: what the other commands start as a child process
    #[command(name = coli_plugins::CHECK_COMMAND, hide = true)]
    CheckPlugin {
        /// The plugin's manifest
        manifest: PathBuf,
        /// Its library
        library: PathBuf,
    },
}

/// Which model runs, and how.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// Folder with config.json and *.safetensors, or a GGUF file [default: COLI_MODEL, else the demo model]
    #[arg(long, value_name = "DIR|FILE")]
    pub model: Option<PathBuf>,
    /// Plugin by name, or by path: its .plugin.toml, its folder, or its library [default: the one that serves the model]
    #[arg(long, value_name = "NAME|PATH", value_parser = |text: &str| Ok::<_, std::convert::Infallible>(Request::parse(text)))]
    pub model_plugin: Option<Request>,
    /// auto, cpu, vulkan, a device's number or its name [default: auto]
    #[arg(long)]
    pub device: Option<DeviceRequest>,
    /// auto, exact (f32 arithmetic in one order) or fast [default: auto]
    #[arg(long)]
    pub precision: Option<PrecisionRequest>,
    /// Positions of the context [default: the model's, at most 4096]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub ctx: Option<u32>,
    /// Threads of the CPU executor [default: one for each processor]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<u32>,
    /// Memory of the device that is taken at most, in MiB; what does not fit runs on the CPU [default: what is free]
    #[arg(long, value_name = "MIB", allow_negative_numbers = true)]
    pub vram_limit: Option<u32>,
}

/// How tokens are chosen, and how many. What is not given here comes from the environment, a settings file or the model.
#[derive(Debug, Args)]
pub struct GenerationArgs {
    /// Temperature; 0 takes the most probable token [default: the model's, else 0.8]
    #[arg(long, value_name = "T", value_parser = |text: &str| number(Key::Temp, text), allow_negative_numbers = true)]
    pub temp: Option<f32>,
    /// Draw among the K most probable tokens; 0 is all [default: the model's, else 0]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub top_k: Option<u32>,
    /// Draw among the most probable tokens that together reach P [default: the model's, else 0.95]
    #[arg(long, value_name = "P", value_parser = |text: &str| number(Key::TopP, text), allow_negative_numbers = true)]
    pub top_p: Option<f32>,
    /// Draw among the tokens at least P times as probable as the best one; 0 is all [default: the model's, else 0]
    #[arg(long, value_name = "P", value_parser = |text: &str| number(Key::MinP, text), allow_negative_numbers = true)]
    pub min_p: Option<f32>,
    /// Lower the scores of tokens in prompt and text: positive ones divided by R, others multiplied; 1 is off [default: the model's, else 1]
    #[arg(long, value_name = "R", value_parser = |text: &str| number(Key::RepeatPenalty, text), allow_negative_numbers = true)]
    pub repeat_penalty: Option<f32>,
    /// Key of the draws; the same seed gives the same text [default: random]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// The most tokens to generate [default: 256]
    #[arg(short = 'n', long = "tokens", value_name = "N", allow_negative_numbers = true)]
    pub tokens: Option<u32>,
}

/// `coli run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Only the text goes to standard output; everything else to standard error.\n\nExamples:\n  coli run \"Emma was\"\n  \
                  coli run --temp 0 -n 32 --json \"My dear\"\n  coli run -f prompt.txt --stop END\n  \
                  coli run --model DIR --chat \"Who was Emma?\""
)]
pub struct RunArgs {
    /// The text to continue; `-` or nothing reads it from standard input
    pub prompt: Option<OsString>,
    /// Read the prompt from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    pub file: Option<PathBuf>,
    /// Put the prompt to the model as a question, with the model's own chat template
    #[arg(long)]
    pub chat: bool,
    /// With --chat: what the model is told before the question
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub system: Option<String>,
    /// End the text before TEXT; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub stop: Vec<String>,
    /// How tokens are chosen
    #[command(flatten)]
    pub generation: GenerationArgs,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Print one JSON object at the end instead of the text
    #[arg(long)]
    pub json: bool,
}

/// `coli config`.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  coli config explain")]
pub enum ConfigCommand {
    /// Every setting with its value and where that comes from
    Explain(ExplainArgs),
}

/// `coli config explain`: takes `run`'s options, so that it can say what they would do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  coli config explain\n  coli config explain --temp 0 --json")]
pub struct ExplainArgs {
    /// How tokens are chosen
    #[command(flatten)]
    pub generation: GenerationArgs,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

/// `coli completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coli completions bash > ~/.local/share/bash-completion/completions/coli")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// `coli eval`.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  coli eval logits --model DIR --ids 1,238,6 --out logits.safetensors")]
pub enum EvalCommand {
    /// The scores of every token after each of the given ones
    Logits(LogitsArgs),
    /// How well the model predicts a text
    Ppl(PplArgs),
}

/// `coli eval ppl`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coli eval ppl --model DIR --text book.txt --ctx 512 --json")]
pub struct PplArgs {
    /// The model; --ctx is the length of the windows that the text is cut into (default 512)
    #[command(flatten)]
    pub model: ModelArgs,
    /// The text, in UTF-8
    #[arg(long, value_name = "FILE")]
    pub text: PathBuf,
    /// One JSON object instead of two lines
    #[arg(long)]
    pub json: bool,
}

/// `coli eval logits`.
#[derive(Debug, Args)]
#[command(after_help = "Needs no tokenizer, unless the model's plugin needs the texts of tokens.\n\nExample:\n  \
                  coli eval logits --model DIR --ids 1,238,6 --out logits.safetensors")]
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

/// `coli bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Token ids are random, the same ones every time; no tokenizer is needed. Rates are medians of the runs.\n\nExamples:\n  \
                  coli bench --model model.gguf\n  coli bench --model model.gguf --prompt 512 --gen 64 --runs 3 --threads 2 --json\n  \
                  coli bench --model model.gguf --profile"
)]
pub struct BenchArgs {
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Tokens of the prompt; 0 leaves prompts out
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true)]
    pub prompt: usize,
    /// Tokens that are decoded one by one, in a conversation of their own; 0 leaves them out
    #[arg(long = "gen", value_name = "N", default_value_t = 64, allow_negative_numbers = true)]
    pub gen_tokens: usize,
    /// Runs of both
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Also show the share of time of each kind of op
    #[arg(long)]
    pub profile: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `coli inspect`.
#[derive(Debug, Args)]
#[command(after_help = "Reads headers only.\n\nExamples:\n  coli inspect DIR\n  coli inspect model.gguf --json")]
pub struct InspectArgs {
    /// Folder with config.json and *.safetensors, or a GGUF file (any part of a split one)
    #[arg(value_name = "FILE|DIR")]
    pub model: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `coli convert`.
#[derive(Debug, Args)]
#[command(
    after_help = "The folder must not exist yet, unless it is a conversion of the same model that was stopped: the same command goes on \
                  with it.\n\nExample:\n  coli convert --from DIR --to DIR --experts int4-g64 --dense int8"
)]
pub struct ConvertArgs {
    /// Folder with config.json and *.safetensors in bf16, f16 or f32; nothing in it is changed
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// Folder to make
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// Format of the matrices of experts, or keep
    #[arg(long, value_name = "FORMAT", default_value = "int4-g64")]
    pub experts: Choice,
    /// Format of all other matrices, embedding and output head too, or keep; int8 is int8-row
    #[arg(long, value_name = "FORMAT", default_value = "int8")]
    pub dense: Choice,
    /// Plugin by name or by path [default: the settings', else the one that serves the model]
    #[arg(long, value_name = "NAME|PATH", value_parser = |text: &str| Ok::<_, std::convert::Infallible>(Request::parse(text)))]
    pub model_plugin: Option<Request>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

/// `coli plugins`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  coli plugins --json\n  coli plugins new mine\n  coli plugins dump MODEL --segment layer.0\n  \
                  coli plugins verify"
)]
pub struct PluginsArgs {
    /// Something else than the list
    #[command(subcommand)]
    pub command: Option<PluginsCommand>,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
    /// Also open libraries again that crashed when they were opened before
    #[arg(long)]
    pub recheck: bool,
}

/// What `coli plugins` does besides the list.
#[derive(Debug, Subcommand)]
pub enum PluginsCommand {
    /// Write the crate of a new plugin
    New(NewArgs),
    /// Print what a plugin records of a model, as text; no weight is read
    Dump(DumpArgs),
    /// Compare an unpacked release with its checksums
    Verify(VerifyArgs),
}

/// `coli plugins new`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coli plugins new mine --dir ../plugins")]
pub struct NewArgs {
    /// The plugin's id: lowercase letters, digits and `_`, a letter first
    pub name: String,
    /// Folder to make the crate's folder NAME in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Root of coli's source tree, which the crate then depends on by path [default: the version of this program]
    #[arg(long, value_name = "ROOT")]
    pub path: Option<PathBuf>,
}

/// `coli plugins dump`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coli plugins dump MODEL --segment layer.0")]
pub struct DumpArgs {
    /// Folder with config.json and *.safetensors, or a GGUF file
    pub model: PathBuf,
    /// One segment: embed, layer.0, head [default: all]
    #[arg(long, value_name = "NAME")]
    pub segment: Option<SegmentName>,
    /// Plugin by name or by path [default: the settings', else the one that serves the model]
    #[arg(long, value_name = "NAME|PATH", value_parser = |text: &str| Ok::<_, std::convert::Infallible>(Request::parse(text)))]
    pub model_plugin: Option<Request>,
}

/// `coli plugins verify`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coli plugins verify --json")]
pub struct VerifyArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl ModelArgs {
    /// The settings that the command line gives.
    pub fn values(&self) -> Values {
        let plugin = self.model_plugin.as_ref().map(|request| match request {
            Request::Name(name) => name.clone(),
            Request::Path(path) => path.display().to_string(),
        });
        of_command_line([
            (Key::Model, self.model.clone().map(Value::Path)),
            (Key::ModelPlugin, plugin.map(Value::Text)),
            (Key::Device, self.device.as_ref().map(|device| Value::Text(device.to_string()))),
            (Key::Precision, self.precision.map(|precision| Value::Text(precision.to_string()))),
            (Key::Ctx, self.ctx.map(|ctx| Value::Whole(ctx.into()))),
            (Key::Threads, self.threads.map(|threads| Value::Whole(threads.into()))),
            (Key::VramLimit, self.vram_limit.map(|mib| Value::Whole(mib.into()))),
        ])
    }
}

impl GenerationArgs {
    /// The settings that the command line gives.
    pub fn values(&self) -> Values {
        of_command_line([
            (Key::Temp, self.temp.map(Value::Number)),
            (Key::TopK, self.top_k.map(|number| Value::Whole(number.into()))),
            (Key::TopP, self.top_p.map(Value::Number)),
            (Key::MinP, self.min_p.map(Value::Number)),
            (Key::RepeatPenalty, self.repeat_penalty.map(Value::Number)),
            (Key::Seed, self.seed.map(Value::Whole)),
            (Key::Tokens, self.tokens.map(|number| Value::Whole(number.into()))),
        ])
    }
}

fn of_command_line(given: impl IntoIterator<Item = (Key, Option<Value>)>) -> Values {
    let mut values = Values::default();
    for (key, value) in given {
        if let Some(value) = value {
            values.add(key, value, Source::CommandLine);
        }
    }
    values
}

/// A number in the range that the table of settings has.
fn number(key: Key, text: &str) -> Result<f32, String> {
    match Setting::of(key).unit.parse(text.as_ref())? {
        Value::Number(number) => Ok(number),
        other => Err(format!("{other} is no number")),
    }
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
