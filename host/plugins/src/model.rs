//! A plugin's object for one model, behind safe calls with bounded replies.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use abi_stable::std_types::{RResult, RStr, RString};
use coli_base::{Error, Result};
use coli_plugin_api::LogLevel;
use coli_plugin_api::abi::{LogFn, PluginBox};
use coli_plugin_api::codec;
use coli_plugin_api::describe::{DescribeRequest, Description, SegmentName};

use crate::load::Library;
use crate::own_devices::{OpDevice, OwnDevices};
use crate::text::one_line;

/// How much of a plugin's own words is passed on.
pub(crate) const WORDS_MAX: usize = 500;
/// A description names every tensor of a model, at most some hundred thousand.
const DESCRIPTION_MAX: usize = 64 << 20;
/// Table rows that one token may read.
const IDS_MAX: usize = 1 << 16;

/// One model, opened by a plugin.
pub struct PluginModel {
    id: String,
    /// Shared with the kernels of the plugin's own ops.
    object: Arc<PluginBox>,
    op_device: Option<OpDevice>,
    own_devices: Arc<OwnDevices>,
}

impl PluginModel {
    /// Makes the plugin's object for one model. The first call on it must be [`PluginModel::describe`].
    pub fn new(library: &Library) -> Result<Self> {
        let made = (library.module.new())(LogFn { write: write_log });
        let object = reply(&library.id, made)?;
        // A field is looked at only where the library's version has it.
        let op_device = if library.module.abi_minor() >= 1 { library.module.op_device() } else { None };
        Ok(Self { id: library.id.clone(), object: Arc::new(object), op_device, own_devices: Arc::default() })
    }

    #[cfg(test)]
    pub(crate) fn of(id: &str, object: PluginBox, op_device: Option<OpDevice>) -> Self {
        Self { id: id.into(), object: Arc::new(object), op_device, own_devices: Arc::default() }
    }

    /// The plugin's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Which of its own ops may run on a device.
    pub fn own_devices(&self) -> &Arc<OwnDevices> {
        &self.own_devices
    }

    /// Whether its library may bring device forms of own ops at all.
    pub fn may_bring_devices(&self) -> bool {
        self.op_device.is_some()
    }

    pub(crate) fn op_device(&self) -> Option<OpDevice> {
        self.op_device
    }

    pub(crate) fn object(&self) -> &Arc<PluginBox> {
        &self.object
    }

    /// Hands the stored model's facts over and takes the plugin's description of it.
    pub fn describe(&self, request: &DescribeRequest) -> Result<Description> {
        let request = serde_json::to_string(request).map_err(|error| Error::run(format!("the request to the plugin: {error}")))?;
        let text = reply(&self.id, self.object.describe(request.as_str().into()))?;
        self.bound("description", text.len(), DESCRIPTION_MAX, "bytes")?;
        serde_json::from_str(&text).map_err(|error| self.refused("its description", &error.to_string()))
    }

    /// The bytes of a segment's recording, for the caller to decode and check.
    pub fn record(&self, segment: SegmentName) -> Result<Vec<u8>> {
        let bytes = reply(&self.id, self.object.record(segment.to_string().as_str().into())).map_err(|error| error.within(segment))?;
        self.bound(&format!("recording of {segment}"), bytes.len(), codec::LEN_MAX, "bytes")?;
        Ok(bytes.as_slice().to_vec())
    }

    /// Table rows for an input of source `Ids`, from a window of token ids that ends at the row's own token.
    pub fn ids(&self, input: &str, window: &[u32]) -> Result<Vec<i64>> {
        let ids = reply(&self.id, self.object.ids(input.into(), window.into()))?;
        self.bound("list of ids", ids.len(), IDS_MAX, "numbers")?;
        Ok(ids.as_slice().to_vec())
    }

    fn bound(&self, what: &str, len: usize, max: usize, unit: &str) -> Result<()> {
        if len <= max {
            return Ok(());
        }
        Err(Error::refused(format!("plugin {}: its {what} has {len} {unit}, and at most {max} are taken", self.id)))
    }

    fn refused(&self, what: &str, why: &str) -> Error {
        Error::refused(format!("plugin {}: {what}: {}", self.id, one_line(why, WORDS_MAX)))
    }
}

/// A call's value, or the plugin's words as a refusal that names it.
fn reply<T>(id: &str, result: RResult<T, RString>) -> Result<T> {
    result.into_result().map_err(|words| Error::refused(format!("plugin {id}: {}", one_line(&words, WORDS_MAX))))
}

/// The least important level that is written. The plugins' log function has no context to keep it in.
static LOG_LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Warning as u8);

/// Sets the least important level of the plugins' log lines that is written to standard error; at first, warnings.
pub fn set_log_level(level: LogLevel) {
    LOG_LEVEL.store(level as u8, Ordering::Relaxed);
}

/// The log function that plugins get. It must not panic: its caller is another library's code.
extern "C" fn write_log(level: u8, text: RStr<'_>) {
    if level <= LOG_LEVEL.load(Ordering::Relaxed) {
        // Where standard error is closed, nobody is there to be told.
        let _ = writeln!(std::io::stderr(), "{}", log_line(level, &text));
    }
}

fn log_line(level: u8, text: &str) -> String {
    let level = match level {
        0 => "error: ",
        1 => "warning: ",
        _ => "",
    };
    format!("plugin: {level}{}", one_line(text, WORDS_MAX))
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
