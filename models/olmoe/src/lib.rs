//! OLMoE (`OlmoeForCausalLM`): pre-norm blocks of attention with normed q and k, and a routed MLP in every layer.
//!
//! [`config`] reads `config.json`, [`weights`] names the stored tensors, [`forward`] records the pass.

mod config;
mod forward;
mod weights;

use coli_plugin_api::describe::{Container, DescribeRequest, Description, SegmentName};
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::{Log, Plugin, export_plugin};

use config::Config;
use weights::Model;

/// One opened OLMoE model.
pub struct Olmoe {
    config: Config,
    model: Model,
    description: Description,
}

impl Plugin for Olmoe {
    const ID: &'static str = "olmoe";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn open(request: &DescribeRequest, _log: Log) -> Result<Self, String> {
        if request.container != Container::Hf {
            return Err("GGUF files are not implemented for olmoe; use the safetensors folder".into());
        }
        let config = Config::read(&request.config)?;
        let (model, description) = weights::describe(&config);
        Ok(Self { config, model, description })
    }

    fn description(&self) -> Description {
        self.description.clone()
    }

    fn record(&self, segment: SegmentName, recorder: &mut Recorder) -> Result<(), String> {
        forward::record(&self.config, &self.model, segment, recorder)
    }
}

export_plugin!(Olmoe);
