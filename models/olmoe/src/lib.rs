//! OLMoE (`OlmoeForCausalLM`): pre-norm blocks of attention with normed q and k, and a routed MLP in every layer.
//!
//! [`config`] reads `config.json`, [`weights`] names the stored tensors, [`forward`] records the pass, [`gguf`] finds
//! all that in GGUF files.

mod config;
mod forward;
mod gguf;
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
        if request.container == Container::Gguf {
            let config = Config::read(&gguf::config(request)).map_err(|error| gguf::words(&error))?;
            let (model, mut description) = weights::describe(&config);
            gguf::rename(&mut description)?;
            return Ok(Self { config, model, description });
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
