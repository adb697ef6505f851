//! What an author implements: plain Rust, no ABI types.

use crate::abi::LogFn;
use crate::describe::{DescribeRequest, Description, SegmentName};
use crate::own_op::OwnOp;
use crate::recorder::Recorder;

/// A model architecture, opened on one model. Implement it, then write `export_plugin!(MyModel);` once in the library.
///
/// All methods may be called from any thread; they must not start threads, open files or keep state between calls. An `Err` is one line
/// for the person who runs the model; a panic is caught and reported the same way.
pub trait Plugin: Send + Sync + Sized + 'static {
    /// The id that the manifest states and that `--model-plugin` takes.
    const ID: &'static str;
    /// The plugin's version, normally `env!("CARGO_PKG_VERSION")`.
    const VERSION: &'static str;

    /// Reads a model's configuration and tensor list. Errors name the key or tensor that is wrong and what was expected.
    fn open(request: &DescribeRequest, log: Log) -> Result<Self, String>;

    /// Dimensions, weights, states, expert groups and segments of the model. Called after [`Plugin::open`].
    fn description(&self) -> Description;

    /// Records one of the segments that [`Plugin::description`] lists.
    fn record(&self, segment: SegmentName, recorder: &mut Recorder) -> Result<(), String>;

    /// Table rows for an input of source `Ids`, from a window of token ids that ends at the row's own token. Pure.
    fn ids(&self, input: &str, _window: &[u32]) -> Result<Vec<i64>, String> {
        Err(format!("this plugin has no ids function `{input}`"))
    }

    /// Ops that this library brings, each of which its manifest names in `own_ops`. They belong to the library, not to a model.
    fn own_ops() -> Vec<Box<dyn OwnOp>> {
        Vec::new()
    }
}

/// How important a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LogLevel {
    /// Something failed.
    Error = 0,
    /// Something a person should know.
    Warning = 1,
    /// Shown with `-v`.
    Info = 2,
    /// Shown with `-vv`.
    Debug = 3,
}

/// The host's log, as a plugin sees it.
#[derive(Clone, Copy)]
pub struct Log(LogFn);

impl Log {
    /// Wraps the host's function.
    pub fn new(write: LogFn) -> Self {
        Self(write)
    }

    /// Writes one line.
    pub fn write(&self, level: LogLevel, text: &str) {
        (self.0.write)(level as u8, text.into());
    }
}
