//! `coli.toml`: which one is read, and what it says.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use coli_base::{Error, Kind, Result, files};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::environment::Environment;
use crate::suggest::nearest;
use crate::table::{Reader, SETTINGS, Setting, Unit};
use crate::value::{Source, Value, Values};

const NAME: &str = "coli.toml";

/// A file of settings is a page; what is larger is something else.
const MAX_BYTES: u64 = 1 << 20;

impl Environment {
    /// The file of settings: the one that was named, else `coli.toml` here, else the one in the person's configuration folder.
    pub fn settings_file(&self, named: Option<&Path>) -> Option<PathBuf> {
        if let Some(path) = named {
            return Some(path.into());
        }
        let user = self.user_config_folder().map(|folder| folder.join(NAME));
        [Some(PathBuf::from(NAME)), user].into_iter().flatten().find(|path| is_there(path))
    }

    /// This environment with the values of a file of settings where it has none itself.
    pub fn with_file(mut self, path: &Path) -> Result<Self> {
        let fail = |why: String| Error::usage(format!("settings file `{}`: {why}", path.display()));
        let bytes = files::read_bounded(path, MAX_BYTES).map_err(|error| {
            let kind = if error.kind == Kind::Refused { Kind::Usage } else { error.kind };
            Error::new(kind, format!("settings file {}", error.text))
        })?;
        let bytes = bytes.ok_or_else(|| fail("does not exist".into()))?;
        let text = String::from_utf8(bytes).map_err(|error| fail(format!("not UTF-8 at byte {}", error.utf8_error().valid_up_to())))?;
        let values = read(&text, path).map_err(fail)?;
        self.values = self.values.or(&values);
        self.file = Some(path.into());
        Ok(self)
    }
}

/// Whether somebody put something there, a link that leads nowhere too. In a folder that cannot be searched nothing is.
fn is_there(path: &Path) -> bool {
    let nothing = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied];
    path.symlink_metadata().map_or_else(|error| !nothing.contains(&error.kind()), |_| true)
}

/// The values of a file; an error begins with the line.
fn read(text: &str, path: &Path) -> std::result::Result<Values, String> {
    let line = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        format!("line {}: not TOML: {}", line(at), error.message())
    })?;
    // A relative path means the file's folder, so that it means the same wherever the program is started.
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    // The first fault of the file is the one to tell, and a table has no order of its own.
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut values = Values::default();
    for (name, value) in entries {
        let at = line(name.span().start);
        let setting = Setting::by_key(name.get_ref()).ok_or_else(|| format!("line {at}: {}", unknown(name.get_ref())))?;
        let Reader::Program(key) = setting.reader else { continue };
        let value = typed(setting.unit, value, folder).ok_or_else(|| {
            let shown = text.get(value.span()).unwrap_or_default();
            let kind = value.get_ref().type_str();
            format!("line {at}: {} is {} ({kind}), expected {}", setting.key, shortened(shown), expected(setting.unit))
        })?;
        values.add(key, value, Source::File(path.into()));
    }
    Ok(values)
}

fn unknown(name: &str) -> String {
    let known = SETTINGS.iter().map(|setting| setting.key);
    let advice = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
    };
    format!("`{}` is not a setting; {advice}", name.escape_debug())
}

fn expected(unit: Unit) -> String {
    match unit {
        Unit::Path => "a path in quotes".into(),
        Unit::Text => "a text in quotes".into(),
        Unit::PathList => "a list of folders: [\"folder\", \"folder\"]".into(),
        number => number.expected(),
    }
}

fn shortened(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if one_line.chars().count() > 60 { one_line.chars().take(57).collect::<String>() + "..." } else { one_line }
}

fn typed(unit: Unit, value: &Spanned<DeValue<'_>>, folder: &Path) -> Option<Value> {
    let path = |value: &DeValue<'_>| value.as_str().filter(|text| !text.is_empty()).map(|text| folder.join(text));
    let value = value.get_ref();
    match (unit, value) {
        (Unit::Path, value) => path(value).map(Value::Path),
        (Unit::PathList, DeValue::Array(list)) => list.iter().map(|item| path(item.get_ref())).collect::<Option<_>>().map(Value::Paths),
        (Unit::Text, value) => value.as_str().filter(|text| !text.is_empty()).map(|text| Value::Text(text.into())),
        (Unit::Whole { .. }, DeValue::Integer(number)) => unit.whole(u64::from_str_radix(number.as_str(), number.radix()).ok()?),
        (Unit::Number { .. }, DeValue::Integer(number)) => unit.number(i64::from_str_radix(number.as_str(), number.radix()).ok()? as f64),
        (Unit::Number { .. }, DeValue::Float(number)) => unit.number(number.as_str().parse().ok()?),
        _ => None,
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
