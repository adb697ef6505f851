//! Qwen3-MoE, and Qwen3.5/3.6 with routed or dense MLPs: attention with normed heads, in the newer ones gated and with three layers of
//! the gated delta rule to one of attention.
//!
//! [`config`] reads `config.json`, [`weights`] names the stored tensors, [`forward`] records the pass, [`draft`] the draft head.
//! [`gguf`] finds all that in GGUF files.

mod config;
mod draft;
mod forward;
mod gguf;
mod weights;

use std::collections::HashSet;

use coli_plugin_api::describe::{Container, DescribeRequest, Description, SegmentName};
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::{Log, Plugin, export_plugin};

use config::Config;
use weights::Model;

/// One opened model.
pub struct Qwen36 {
    config: Config,
    model: Model,
    description: Description,
}

impl Plugin for Qwen36 {
    const ID: &'static str = "qwen36";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn open(request: &DescribeRequest, _log: Log) -> Result<Self, String> {
        if request.container == Container::Gguf {
            return Self::open_gguf(request);
        }
        let config = Config::read(&request.config)?;
        let names: HashSet<&str> = request.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        let (model, description) = weights::describe(&config, |name| names.contains(name));
        Ok(Self { config, model, description })
    }

    fn description(&self) -> Description {
        self.description.clone()
    }

    fn record(&self, segment: SegmentName, recorder: &mut Recorder) -> Result<(), String> {
        forward::record(&self.config, &self.model, segment, recorder)
    }
}

impl Qwen36 {
    fn open_gguf(request: &DescribeRequest) -> Result<Self, String> {
        let file = gguf::File::of(request)?;
        let mut config = Config::read(&file.config(request)).map_err(|error| file.words(&error))?;
        config.converted = true;
        let (model, mut description) = weights::describe(&config, |name| file.has(request, name));
        file.rename(&mut description)?;
        Ok(Self { config, model, description })
    }
}

export_plugin!(Qwen36);
