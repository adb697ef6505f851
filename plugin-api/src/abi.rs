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
    sabi_types::VersionStrings,
    std_types::{RBox, RResult, RSlice, RStr, RString, RVec},
    StableAbi,
};

/// A change here means that libraries built before it are refused.
pub const ABI_MAJOR: u32 = 0;
/// Counts the optional fields added to [`PluginModule`] since the major version began.
pub const ABI_MINOR: u32 = 0;
/// `major.minor`, as a manifest's `abi` key states it.
pub const ABI_VERSION: &str = "0.0";

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
    #[sabi(last_prefix_field)]
    fn ids(&self, input: RStr<'_>, window: RSlice<'_, u32>) -> RResult<RVec<i64>, RString>;
}

/// The owned object that a plugin hands to the host.
pub type PluginBox = PluginObject_TO<'static, RBox<()>>;

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
}

impl RootModule for PluginModule_Ref {
    abi_stable::declare_root_module_statics! {PluginModule_Ref}
    const BASE_NAME: &'static str = "coli_plugin";
    const NAME: &'static str = "coli_plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}
