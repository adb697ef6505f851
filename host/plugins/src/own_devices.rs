//! Device forms of ops that a plugin brings: asked for once for each use, believed no more than anything else that comes from there, and
//! planned only while the host says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use abi_stable::std_types::{ROption, RResult, RStr, RString};
use coli_plugin_api::abi::RawDevice;
use coli_plugin_api::own_op::{OwnDevice, OwnForm};
use coli_shaders::device::{Plan, PlanCall, own_plan};

use crate::model::WORDS_MAX;
use crate::text::one_line;

/// Bytes of a kernel at most.
const SPIRV_MAX: usize = 1 << 20;
/// Bytes of a form's JSON at most.
const FORM_MAX: usize = 1 << 12;

/// The library's function for device forms.
pub(crate) type OpDevice = extern "C" fn(RStr<'_>, RStr<'_>) -> RResult<ROption<RawDevice>, RString>;

/// Which of a model's own ops may run on a device. Nothing may until the host has tried it there.
#[derive(Debug, Default)]
pub struct OwnDevices(Mutex<HashMap<String, Standing>>);

/// What is known of an op.
#[derive(Debug, Clone, Default)]
struct Standing {
    /// Why its device form is not used any more.
    dropped: Option<String>,
    /// Whether its device form is planned.
    allowed: bool,
    /// Whether any use of it has brought one.
    brought: bool,
}

impl OwnDevices {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Standing>> {
        // Each change is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an op's device form be planned from now on.
    pub fn allow(&self, op: &str) {
        let mut all = self.all();
        let standing = all.entry(op.into()).or_default();
        (standing.allowed, standing.dropped) = (true, None);
    }

    /// Runs an op on the CPU from now on, with the reason.
    pub fn drop_form(&self, op: &str, why: &str) {
        let mut all = self.all();
        let standing = all.entry(op.into()).or_default();
        (standing.allowed, standing.dropped) = (false, Some(why.into()));
    }

    /// Whether an op's device form is planned.
    pub fn allowed(&self, op: &str) -> bool {
        self.all().get(op).is_some_and(|standing| standing.allowed)
    }

    /// Whether any use of an op that was planned so far has brought a device form.
    pub fn brought(&self, op: &str) -> bool {
        self.all().get(op).is_some_and(|standing| standing.brought)
    }

    fn note_brought(&self, op: &str) {
        self.all().entry(op.into()).or_default().brought = true;
    }

    /// Why an op's device form is not planned.
    fn refusal(&self, op: &str) -> Option<String> {
        match self.all().get(op) {
            Some(Standing { allowed: true, .. }) => None,
            Some(Standing { dropped: Some(why), .. }) => Some(format!("has no device form any more: {why}")),
            _ => Some("has a device form that was not tried".into()),
        }
    }
}

/// The device form of one use of an op.
pub(crate) struct Form {
    pub op: String,
    pub params: Vec<u8>,
    /// JSON of the use's facts.
    pub facts: String,
    /// A library of an earlier minor version has none.
    pub ask: Option<OpDevice>,
    pub devices: Arc<OwnDevices>,
    /// What the library said, once it was asked.
    pub said: OnceLock<Result<Option<OwnDevice>, String>>,
}

impl Form {
    /// How the use runs on a device.
    pub fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        let said = self.said.get_or_init(|| self.ask()).as_ref().map_err(Clone::clone)?;
        let Some(device) = said else { return Err("brings no device form".into()) };
        self.devices.note_brought(&self.op);
        match self.devices.refusal(&self.op) {
            Some(why) => Err(why),
            None => own_plan(&self.op, device, &self.params, call),
        }
    }

    fn ask(&self) -> Result<Option<OwnDevice>, String> {
        let Some(ask) = self.ask else { return Ok(None) };
        let said = ask(self.op.as_str().into(), self.facts.as_str().into()).into_result();
        let said = said.map_err(|words| format!("its device form: {}", one_line(&words, WORDS_MAX)))?;
        let Some(raw) = said.into_option() else { return Ok(None) };
        if raw.spirv.len() > SPIRV_MAX || raw.form.len() > FORM_MAX {
            return Err(format!(
                "its device form: {} and {} bytes, at most {SPIRV_MAX} and {FORM_MAX} are taken",
                raw.spirv.len(),
                raw.form.len()
            ));
        }
        let form: OwnForm =
            serde_json::from_str(&raw.form).map_err(|error| format!("its device form: {}", one_line(&error.to_string(), WORDS_MAX)))?;
        Ok(Some(OwnDevice { spirv: raw.spirv.as_slice().to_vec(), form }))
    }
}
