//! DeepSeek-V4.1: a residual of several streams, attention over a window and over chosen rows of a compressed cache that several layers
//! share, routed MLPs, and tables of n-gram rows.
//!
//! [`config`] reads `config.json`, [`weights`] names the stored tensors, [`forward`] records the pass, [`attention`] what mixes rows,
//! [`engram`] says which table rows an n-gram has.

mod attention;
mod config;
mod engram;
mod forward;
mod weights;

use coli_plugin_api::describe::{Container, DescribeRequest, Description, SegmentName};
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::{Log, Plugin, export_plugin};

use config::Config;
use engram::Engram;
use weights::Model;

/// One opened model.
pub struct DeepseekV41 {
    config: Config,
    engram: Option<Engram>,
    model: Model,
    description: Description,
}

impl Plugin for DeepseekV41 {
    const ID: &'static str = "deepseek_v41";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn open(request: &DescribeRequest, _log: Log) -> Result<Self, String> {
        if request.container != Container::Hf {
            return Err("GGUF files are not implemented for deepseek_v41; use the safetensors folder".into());
        }
        let config = Config::read(&request.config)?;
        let texts = request.tokenizer.as_deref().ok_or("the tokenizer's texts were not given")?;
        if config.engram.is_some() {
            engram::check_texts(config.vocab, texts.len())?;
        }
        let engram = config.engram.as_ref().map(|engram| Engram::new(engram, texts)).transpose()?;
        weights::check_norms(&config, &request.tensors)?;
        let rows = |layer: usize| engram.as_ref().map_or(0, |engram| engram.rows(layer));
        let (model, description) = weights::describe(&config, rows)?;
        Ok(Self { config, engram, model, description })
    }

    fn description(&self) -> Description {
        self.description.clone()
    }

    fn record(&self, segment: SegmentName, recorder: &mut Recorder) -> Result<(), String> {
        forward::record(&self.config, &self.model, segment, recorder)
    }

    fn ids(&self, input: &str, window: &[u32]) -> Result<Vec<i64>, String> {
        let table = input.strip_prefix(forward::NGRAMS).and_then(|number| number.parse().ok());
        match (table, &self.engram) {
            (Some(table), Some(engram)) => engram.ids(table, window),
            _ => Err(format!("there is no input `{input}`")),
        }
    }
}

export_plugin!(DeepseekV41);
