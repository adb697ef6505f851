//! GLM-5.3: a residual of several streams around layers of the delta rule with a decay for each channel (KDA) and of attention over a
//! chosen set of latent rows (DSA), with routed MLPs.
//!
//! [`config`] reads `config.json`, [`weights`] names the stored tensors, [`forward`] records the pass, [`mixers`] the two kinds of layer,
//! [`draft`] the draft head. [`gguf`] finds all that in GGUF files.

mod config;
mod draft;
mod forward;
mod gguf;
mod mixers;
mod weights;

use coli_plugin_api::describe::{Container, DescribeRequest, Description, SegmentName};
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::{Log, Plugin, export_plugin};

use config::Config;
use weights::Model;

/// One opened model.
pub struct Glm53 {
    config: Config,
    model: Model,
    description: Description,
}

impl Plugin for Glm53 {
    const ID: &'static str = "glm53";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn open(request: &DescribeRequest, _log: Log) -> Result<Self, String> {
        if request.container == Container::Gguf {
            return Self::open_gguf(request);
        }
        let config = Config::read(&request.config)?;
        let stored = |name: &str| request.tensors.iter().any(|tensor| tensor.name == name);
        let (model, description) = weights::describe(&config, stored);
        Ok(Self { config, model, description })
    }

    fn description(&self) -> Description {
        self.description.clone()
    }

    fn record(&self, segment: SegmentName, recorder: &mut Recorder) -> Result<(), String> {
        forward::record(&self.config, &self.model, segment, recorder)
    }
}

impl Glm53 {
    fn open_gguf(request: &DescribeRequest) -> Result<Self, String> {
        let mut config = Config::read(&gguf::config(request)?).map_err(|error| gguf::words(&error))?;
        config.converted = true;
        let (model, mut description) = weights::describe(&config, |name| gguf::has(request, name));
        gguf::rename(&mut description)?;
        Ok(Self { config, model, description })
    }
}

export_plugin!(Glm53);
