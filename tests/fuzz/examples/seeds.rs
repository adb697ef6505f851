//! Writes `seeds/<target>/`: small inputs that are accepted, and some that are nearly so. Run it again when a format changes.

use std::fs;
use std::path::{Path, PathBuf};

use coli_fuzz::demo;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

/// The sources of the OLMoE plugin.
const OLMOE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/olmoe");

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    safetensors(&folder(&root, "safetensors_header")?)?;
    configs(&folder(&root, "config_json")?)?;
    manifests(&folder(&root, "manifest")?)?;
    let model = demo();
    let described = serde_json::to_string(&model.description)?;
    fs::write(folder(&root, "describe_json")?.join("demo"), described)?;
    let segments = folder(&root, "segment_bytes")?;
    model.recordings.iter().try_for_each(|(name, bytes)| fs::write(segments.join(name.to_string()), bytes))
}

/// An empty folder for a target.
fn folder(root: &Path, target: &str) -> std::io::Result<PathBuf> {
    let folder = root.join(target);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn safetensors(folder: &Path) -> std::io::Result<()> {
    let bytes = vec![1; 64];
    let tensors =
        [("a", Dtype::F32, vec![2, 3], 24), ("b", Dtype::BF16, vec![4], 8), ("c", Dtype::I8, vec![5], 5), ("d", Dtype::F16, vec![], 2)];
    for count in 0..=tensors.len() {
        let views = tensors[..count].iter().map(|(name, dtype, shape, len)| {
            let view = TensorView::new(*dtype, shape.clone(), &bytes[..*len]);
            (*name, view.expect("its bytes are as many as its shape says"))
        });
        let file = safetensors::serialize(views, None).expect("it can be written");
        fs::write(folder.join(format!("tensors_{count}")), file)?;
    }
    Ok(())
}

fn configs(folder: &Path) -> std::io::Result<()> {
    let text = fs::read_to_string(format!("{OLMOE}/demo/config.json"))?;
    let demo: Value = serde_json::from_str(&text)?;
    let least = json!({
        "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 3, "num_experts": 2,
        "num_experts_per_tok": 1, "norm_topk_prob": true, "vocab_size": 5, "max_position_embeddings": 6, "rope_theta": 1e4
    });
    fs::write(folder.join("demo"), demo.to_string())?;
    fs::write(folder.join("least"), least.to_string())
}

fn manifests(folder: &Path) -> std::io::Result<()> {
    fs::copy(format!("{OLMOE}/olmoe.plugin.toml"), folder.join("olmoe"))?;
    fs::write(folder.join("least"), "id='a'\nversion='1'\nabi='0.0'\ngguf_architectures=['a']\nops=[]\nlibrary='a'\n")
}
