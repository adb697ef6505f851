//! The guard between a plain Rust [`Plugin`] and the frozen layout of [`crate::abi`].
//!
//! A panic that reached an `extern "C"` frame would abort the process, so every entry, construction included, catches it here and hands
//! back one line of text. The catch itself costs nothing on the path that does not panic.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use abi_stable::sabi_trait::TD_Opaque;
use abi_stable::std_types::{RErr, ROk, ROption, RResult, RSlice, RStr, RString, RVec};

use crate::abi::{LogFn, PluginBox, PluginObject, PluginObject_TO, RawCall, RawDevice};
use crate::codec;
use crate::describe::{DescribeRequest, SegmentName};
use crate::own_op::{OwnCall, OwnDevice, OwnKernel, OwnOp};
use crate::plugin::{Log, Plugin};
use crate::recorder::Recorder;

thread_local! {
    /// Whether this thread is inside [`guarded`], and where its last panic there was.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static PANIC_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A library has its own copy of the standard library, whose hook would print a second, longer text for a panic that becomes an error.
/// Inside the guard only the place is kept; everywhere else the hook that was there before runs.
fn quiet_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if INSIDE.get() {
                let place = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
                PANIC_PLACE.set(place);
            } else {
                before(info);
            }
        }));
    });
}

/// Runs `call` and turns a panic into an error that names the method and the place.
fn guarded<T>(method: &str, call: impl FnOnce() -> Result<T, String>) -> RResult<T, RString> {
    quiet_hook();
    let outer = INSIDE.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(outer);
    match outcome {
        Ok(Ok(value)) => ROk(value),
        Ok(Err(text)) => RErr(text.into()),
        Err(payload) => {
            let text = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_string())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".into());
            // Dropping a payload may run the plugin's code again and panic again.
            std::mem::forget(payload);
            RErr(format!("the plugin panicked in `{method}`{}: {text}", PANIC_PLACE.take()).into())
        }
    }
}

/// A plugin behind its guard: the model is opened by the first `describe`.
struct Guard<P> {
    model: OnceLock<P>,
    log: Log,
    own_ops: Vec<Box<dyn OwnOp>>,
    /// Prepared uses of own ops, by the numbers that the host has. They live as long as the object.
    kernels: Mutex<Vec<Arc<dyn OwnKernel>>>,
}

impl<P: Plugin> Guard<P> {
    fn model(&self) -> Result<&P, String> {
        self.model.get().ok_or_else(|| "`describe` has not been called, or failed".into())
    }

    fn own_op(&self, id: &str) -> Result<&dyn OwnOp, String> {
        let op = self.own_ops.iter().find(|op| op.id() == id);
        op.map(|op| &**op).ok_or_else(|| format!("this library has no op `{id}`"))
    }

    fn kernel(&self, number: u64) -> Result<Arc<dyn OwnKernel>, String> {
        // A kernel is pushed whole or not at all, so a lock that a panic left behind guards nothing broken.
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = usize::try_from(number).ok().and_then(|number| kernels.get(number));
        kernel.cloned().ok_or_else(|| format!("there is no prepared op {number}"))
    }
}

impl<P: Plugin> PluginObject for Guard<P> {
    fn describe(&self, request: RStr<'_>) -> RResult<RString, RString> {
        guarded("describe", || {
            let request: DescribeRequest = serde_json::from_str(&request).map_err(|error| format!("the host's request: {error}"))?;
            let model = P::open(&request, self.log)?;
            let description = model.description();
            self.model.set(model).map_err(|_| "`describe` was called twice".to_string())?;
            let text = serde_json::to_string(&description).map_err(|error| format!("the description: {error}"))?;
            Ok(text.into())
        })
    }

    fn record(&self, segment: RStr<'_>) -> RResult<RVec<u8>, RString> {
        guarded("record", || {
            let name: SegmentName = segment.as_str().parse()?;
            let mut recorder = Recorder::default();
            self.model()?.record(name, &mut recorder)?;
            let recording = recorder.finish()?;
            Ok(codec::encode(&recording)?.into())
        })
    }

    fn ids(&self, input: RStr<'_>, window: RSlice<'_, u32>) -> RResult<RVec<i64>, RString> {
        guarded("ids", || self.model()?.ids(&input, window.as_slice()).map(Into::into))
    }

    fn op_prepare(&self, op: RStr<'_>, facts: RStr<'_>) -> RResult<u64, RString> {
        guarded("op_prepare", || {
            let facts = serde_json::from_str(&facts).map_err(|error| format!("the host's facts: {error}"))?;
            let kernel = self.own_op(&op)?.prepare(&facts)?;
            let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
            kernels.push(kernel.into());
            Ok(kernels.len() as u64 - 1)
        })
    }

    fn op_run(&self, kernel: u64, call: RawCall<'_>) -> RResult<(), RString> {
        guarded("op_run", || self.kernel(kernel)?.run(&mut OwnCall::new(call)?))
    }

    fn op_cases(&self, op: RStr<'_>) -> RResult<RString, RString> {
        guarded("op_cases", || {
            let cases = self.own_op(&op)?.cases()?;
            let text = serde_json::to_string(&cases).map_err(|error| format!("the cases: {error}"))?;
            Ok(text.into())
        })
    }
}

/// Makes the guarded object for [`export_plugin!`]; called by the host once for each model.
#[doc(hidden)]
pub fn new_object<P: Plugin>(log: LogFn) -> RResult<PluginBox, RString> {
    guarded("new", || {
        let guard: Guard<P> = Guard { model: OnceLock::new(), log: Log::new(log), own_ops: P::own_ops(), kernels: Mutex::new(Vec::new()) };
        Ok(PluginObject_TO::from_value(guard, TD_Opaque))
    })
}

/// The device form of an own op for [`export_plugin!`], guarded.
#[doc(hidden)]
pub fn op_device<P: Plugin>(op: RStr<'_>, facts: RStr<'_>) -> RResult<ROption<RawDevice>, RString> {
    guarded("op_device", || {
        let facts = serde_json::from_str(&facts).map_err(|error| format!("the host's facts: {error}"))?;
        let found = P::own_ops().into_iter().find(|own| own.id() == op.as_str());
        let device = found.ok_or_else(|| format!("this library has no op `{op}`"))?.device(&facts)?;
        let raw = |device: OwnDevice| {
            let form = serde_json::to_string(&device.form).map_err(|error| format!("the device form: {error}"))?;
            Ok::<_, String>(RawDevice { form: form.into(), spirv: device.spirv.into() })
        };
        Ok(device.map(raw).transpose()?.into())
    })
}

#[doc(hidden)]
pub use abi_stable::prefix_type::PrefixTypeTrait as __PrefixTypeTrait;

/// Exports a type that implements [`Plugin`] from a `cdylib`. Write it once in the library's root.
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty) => {
        /// The symbol that the host looks for; abi_stable fixes its name.
        #[allow(unsafe_code, non_upper_case_globals, missing_docs)]
        #[no_mangle]
        pub static _1as_0lib_1header_0root_bmodule_bloader: $crate::abi_stable::library::LibHeader = {
            extern "C" fn new(
                log: $crate::abi::LogFn,
            ) -> $crate::abi_stable::std_types::RResult<$crate::abi::PluginBox, $crate::abi_stable::std_types::RString> {
                $crate::boundary::new_object::<$plugin>(log)
            }
            extern "C" fn op_device(
                op: $crate::abi_stable::std_types::RStr<'_>,
                facts: $crate::abi_stable::std_types::RStr<'_>,
            ) -> $crate::abi_stable::std_types::RResult<
                $crate::abi_stable::std_types::ROption<$crate::abi::RawDevice>,
                $crate::abi_stable::std_types::RString,
            > {
                $crate::boundary::op_device::<$plugin>(op, facts)
            }
            fn module() -> $crate::abi::PluginModule_Ref {
                use $crate::boundary::__PrefixTypeTrait as _;
                $crate::abi::PluginModule {
                    abi_major: $crate::abi::ABI_MAJOR,
                    abi_minor: $crate::abi::ABI_MINOR,
                    panic_unwind: cfg!(panic = "unwind"),
                    id: $crate::abi_stable::std_types::RStr::from_str(<$plugin as $crate::Plugin>::ID),
                    version: $crate::abi_stable::std_types::RStr::from_str(<$plugin as $crate::Plugin>::VERSION),
                    new,
                    op_device,
                }
                .leak_into_prefix()
            }
            extern "C" fn constructor() -> $crate::abi_stable::library::RootModuleResult {
                $crate::abi_stable::library::__call_root_module_loader(module)
            }
            // SAFETY: the constructor returns the module of the type that the header is made for, and the layout is checked on load.
            unsafe {
                $crate::abi_stable::library::LibHeader::from_constructor::<$crate::abi::PluginModule_Ref>(
                    constructor,
                    $crate::abi_stable::library::CheckTypeLayout::Yes,
                )
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{Container, Description};

    extern "C" fn silent(_: u8, _: RStr<'_>) {}

    /// Panics in the method that its configuration names.
    struct Panics(String);

    impl Plugin for Panics {
        const ID: &'static str = "panics";
        const VERSION: &'static str = "0";
        fn open(request: &DescribeRequest, _: Log) -> Result<Self, String> {
            let method = request.config["panic"].as_str().ok_or("no key `panic`")?;
            assert!(method != "open", "boom");
            Ok(Self(method.into()))
        }
        fn description(&self) -> Description {
            assert!(self.0 != "description", "boom");
            Description::default()
        }
        fn record(&self, _: SegmentName, _: &mut Recorder) -> Result<(), String> {
            assert!(self.0 != "record", "boom");
            Ok(())
        }
        fn ids(&self, _: &str, window: &[u32]) -> Result<Vec<i64>, String> {
            assert!(self.0 != "ids", "boom");
            Ok(window.iter().map(|id| i64::from(*id)).collect())
        }
    }

    fn request(panic: &str) -> String {
        let request =
            DescribeRequest { container: Container::Hf, config: serde_json::json!({ "panic": panic }), tensors: vec![], tokenizer: None };
        serde_json::to_string(&request).unwrap()
    }

    /// The error of the named method of a plugin that panics there, or `None` where it does not.
    fn outcome(panic: &str, method: &str) -> Option<String> {
        let object = new_object::<Panics>(LogFn { write: silent }).unwrap();
        let described = object.describe(request(panic).as_str().into());
        let error = match method {
            "describe" => described.err(),
            "record" => object.record("embed".into()).err(),
            _ => object.ids("window".into(), [7u32].as_slice().into()).err(),
        };
        error.map(RString::into_string).into_option()
    }

    #[test]
    fn a_panic_in_any_method_is_an_error_that_names_it() {
        for (panic, method) in [("open", "describe"), ("description", "describe"), ("record", "record"), ("ids", "ids")] {
            let error = outcome(panic, method).unwrap_or_else(|| panic!("{method} did not fail"));
            assert!(error.starts_with(&format!("the plugin panicked in `{method}` at ")) && error.ends_with(": boom"), "{error}");
        }
        for method in ["describe", "record", "ids"] {
            assert_eq!(outcome("nowhere", method), None);
        }
    }

    #[test]
    fn methods_before_describe_and_a_second_describe_are_errors() {
        let object = new_object::<Panics>(LogFn { write: silent }).unwrap();
        assert!(object.record("embed".into()).is_err());
        assert!(object.describe("{}".into()).is_err());
        assert!(object.describe(request("nowhere").as_str().into()).is_ok());
        assert!(object.describe(request("nowhere").as_str().into()).is_err());
    }
}
