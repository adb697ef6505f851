//! The frozen layout that crosses the border between host and plugin: one prefix-type root module whose `new` returns one object.
//!
//! Rules of growth. Fields are only ever added at the end of [`PluginModule`], as optional ones (their accessor then returns `None` for
//! an older library), and every use is gated by the library's [`PluginModule::abi_minor`]. [`PluginObject`] does not grow: a new
//! ability is a new optional field of the module. A change of anything else is a new [`ABI_MAJOR`].
// The code that abi_stable's macros write is unsafe and has names of its own style; its soundness is that crate's contract.
#![allow(unsafe_code, non_local_definitions, non_camel_case_types, missing_docs)]
#![allow(clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]

use abi_stable::{
    library::RootModule,
    package_version_strings, sabi_trait,
    sabi_types::{RMut, VersionStrings},
    std_types::{RBox, ROption, RResult, RSlice, RSliceMut, RStr, RString, RVec},
    StableAbi,
};

/// A change here means that libraries built before it are refused.
pub const ABI_MAJOR: u32 = 0;
/// Counts the optional fields added to [`PluginModule`] since the major version began.
pub const ABI_MINOR: u32 = 1;
/// `major.minor`, as a manifest's `abi` key states it.
pub const ABI_VERSION: &str = "0.1";

/// How a plugin writes a line to the host's log: level (0 error, 1 warning, 2 information, 3 debug) and text.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct LogFn {
    /// The host's function.
    pub write: extern "C" fn(u8, RStr<'_>),
}

/// One opened model, as the host sees it. Text is UTF-8; an error is one line for a person.
#[sabi_trait]
pub trait PluginObject: Send + Sync {
    /// JSON of a [`crate::describe::DescribeRequest`] in, of a [`crate::describe::Description`] out. Called once, first.
    fn describe(&self, request: RStr<'_>) -> RResult<RString, RString>;
    /// A segment's name in, its recording in the byte format of [`crate::codec`] out.
    fn record(&self, segment: RStr<'_>) -> RResult<RVec<u8>, RString>;
    /// Table rows that an `ids` input reads for the last token of a window, a pure function; -1 reads nothing.
    fn ids(&self, input: RStr<'_>, window: RSlice<'_, u32>) -> RResult<RVec<i64>, RString>;
    /// Checks one use of an op of the library's own: its name and JSON of [`crate::own_op::OwnFacts`] in, a number for
    /// [`PluginObject::op_run`] out. This and the next two need no `describe`.
    fn op_prepare(&self, op: RStr<'_>, facts: RStr<'_>) -> RResult<u64, RString>;
    /// Runs a prepared op over the rows of a step.
    fn op_run(&self, kernel: u64, call: RawCall<'_>) -> RResult<(), RString>;
    /// An own op's name in, JSON of a list of [`crate::own_op::OwnCase`] out.
    #[sabi(last_prefix_field)]
    fn op_cases(&self, op: RStr<'_>) -> RResult<RString, RString>;
}

/// The owned object that a plugin hands to the host.
pub type PluginBox = PluginObject_TO<'static, RBox<()>>;

/// Where a row stands.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnRow {
    /// The conversation's slot.
    pub conv: u32,
    /// Its position in the conversation's cache.
    pub pos: u32,
    /// The row of the step that it is, or was taken from.
    pub step_row: u32,
}

/// An operand: columns `col0..col0 + ncols` of rows of `stride` words, exactly as many rows as the call has.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct RawInput<'a> {
    /// All words of the rows.
    pub words: RSlice<'a, u32>,
    /// Words of a row.
    pub stride: usize,
    /// The first column.
    pub col0: usize,
    /// How many.
    pub ncols: usize,
}

/// An output: rows of `width` words, exactly as many as the call has.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct RawOutput<'a> {
    /// All words of the rows.
    pub words: RSliceMut<'a, u32>,
    /// Words of a row.
    pub width: usize,
}

/// A weight as numbers, row after row.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct RawWeight<'a> {
    /// The numbers.
    pub numbers: RSlice<'a, f32>,
    /// Rows.
    pub rows: usize,
    /// Numbers of a row.
    pub cols: usize,
}

/// The host's side of an own op's one state. It never panics: its caller is another library's code.
#[sabi_trait]
pub trait RawState {
    /// The row that a conversation has at `index`, or nothing.
    fn row(&self, conv: u32, index: u32) -> ROption<RSlice<'_, f32>>;
    /// The same for writing; nothing where the op may only read.
    fn row_mut(&mut self, conv: u32, index: u32) -> ROption<RSliceMut<'_, f32>>;
    /// The value of an accumulator before the row at `pos`, to be advanced by that row.
    #[sabi(last_prefix_field)]
    fn accumulator(&mut self, conv: u32, pos: u32) -> ROption<RSliceMut<'_, f32>>;
}

/// An own op over the rows of a step. Everything in it is valid for the call only.
#[repr(C)]
#[derive(StableAbi)]
pub struct RawCall<'a> {
    /// The rows of the op's operands and outputs, in order.
    pub rows: RSlice<'a, OwnRow>,
    /// Operands, in order.
    pub ins: RVec<RawInput<'a>>,
    /// Outputs, in order.
    pub outs: RVec<RawOutput<'a>>,
    /// Weights, in order.
    pub weights: RVec<RawWeight<'a>>,
    /// The op's state; one without rows where it has none.
    pub state: RawState_TO<'a, RMut<'a, ()>>,
}

/// How an own op runs on a device.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct RawDevice {
    /// JSON of [`crate::own_op::OwnForm`].
    pub form: RString,
    /// SPIR-V, as little-endian words.
    pub spirv: RVec<u8>,
}

/// What a plugin library exports.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginModule_Ref)))]
#[sabi(missing_field(panic))]
pub struct PluginModule {
    /// [`ABI_MAJOR`] of the plugin-api that the library was built with.
    pub abi_major: u32,
    /// [`ABI_MINOR`] of the plugin-api that the library was built with.
    pub abi_minor: u32,
    /// Whether the library was built with `panic = "unwind"`; the host refuses one that was not, since its panics cannot be caught.
    pub panic_unwind: bool,
    /// The id that its manifest must state.
    pub id: RStr<'static>,
    /// The plugin's own version.
    pub version: RStr<'static>,
    /// Makes an object for one model.
    #[sabi(last_prefix_field)]
    pub new: extern "C" fn(LogFn) -> RResult<PluginBox, RString>,
    /// From minor version 1 on: the device form of one use of an own op, its name and JSON of [`crate::own_op::OwnFacts`] in.
    #[sabi(missing_field(option))]
    pub op_device: extern "C" fn(RStr<'_>, RStr<'_>) -> RResult<ROption<RawDevice>, RString>,
}

impl RootModule for PluginModule_Ref {
    abi_stable::declare_root_module_statics! {PluginModule_Ref}
    const BASE_NAME: &'static str = "coli_plugin";
    const NAME: &'static str = "coli_plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}
