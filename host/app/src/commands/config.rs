//! `coli config explain`: every setting, its value, and what gave it.

use std::io::Write as _;

use coli_base::Result;
use coli_config::{Environment, Reader, SETTINGS, Setting, Value, Values};
use serde::Serialize;

use super::defaults;
use crate::cli::ExplainArgs;
use crate::engine;

/// A setting in `--json`.
#[derive(Serialize)]
struct Row {
    key: &'static str,
    value: Shown,
    default: String,
    source: String,
    unit: &'static str,
    expected: String,
    environment: &'static str,
    doc: &'static str,
}

/// A value in JSON: numbers are numbers, and what is not set is `null`.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown {
    Nothing,
    Text(String),
    Texts(Vec<String>),
    Whole(u64),
    Number(f32),
}

pub(super) fn explain(args: &ExplainArgs, environment: &Environment) -> anyhow::Result<()> {
    let given = args.model.values().or(&args.generation.values()).or(&environment.values);
    let values = with_models(given, args, environment)?.or_defaults();
    let rows: Vec<Row> = SETTINGS.iter().filter_map(|setting| row(setting, &values)).collect();
    if args.json {
        let json = serde_json::to_string_pretty(&rows)?;
        return Ok(super::to_stdout(|out| writeln!(out, "{json}"))?);
    }
    super::to_stdout(|out| {
        for setting in SETTINGS {
            let Reader::Program(key) = setting.reader else { continue };
            let (value, source) = match values.get(key) {
                Some((value, source)) => (value.to_string(), source.to_string()),
                None => (format!("({})", setting.default_words()), "default".into()),
            };
            let (name, unit, doc) = (setting.key, setting.unit.name(), setting.doc);
            writeln!(out, "{name:<15} {value:<12} from {source}; {unit}: {doc}")?;
        }
        Ok(())
    })?;
    Ok(())
}

/// With the values of the model's file. A model that is not there has none: this command is for finding out why.
fn with_models(given: Values, args: &ExplainArgs, environment: &Environment) -> Result<Values> {
    let Ok(folder) = engine::find_model(args.model.model.as_deref(), environment) else { return Ok(given) };
    // A GGUF file has none.
    if folder.path.is_file() {
        return Ok(given);
    }
    let file = coli_store::optional_object(&folder.path.join(defaults::FILE))?;
    defaults::with_model(given, file.as_ref())
}

fn row(setting: &'static Setting, values: &Values) -> Option<Row> {
    let Reader::Program(key) = setting.reader else { return None };
    let (value, source) = match values.get(key) {
        Some((value, source)) => (shown(value), source.to_string()),
        None => (Shown::Nothing, "default".into()),
    };
    Some(Row {
        key: setting.key,
        value,
        default: setting.default_words(),
        source,
        unit: setting.unit.name(),
        expected: setting.unit.expected(),
        environment: setting.env,
        doc: setting.doc,
    })
}

fn shown(value: &Value) -> Shown {
    match value {
        Value::Path(path) => Shown::Text(path.display().to_string()),
        Value::Paths(paths) => Shown::Texts(paths.iter().map(|path| path.display().to_string()).collect()),
        Value::Text(text) => Shown::Text(text.clone()),
        Value::Whole(number) => Shown::Whole(*number),
        Value::Number(number) => Shown::Number(*number),
    }
}
