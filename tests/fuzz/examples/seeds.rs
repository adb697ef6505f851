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
    gguf(&folder(&root, "gguf_header")?)?;
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

/// A GGUF file with one value of each kind, and tensors of a number, of blocks and of an unknown type.
fn gguf(folder: &Path) -> std::io::Result<()> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let list = |kind: u32, count: u64, values: &[u8]| [&kind.to_le_bytes()[..], &count.to_le_bytes(), values].concat();
    let mut keys: Vec<(u32, Vec<u8>)> = vec![(8, text("olmoe")), (9, list(8, 2, &[text("a"), text("b")].concat()))];
    keys.push((9, list(9, 1, &list(5, 2, &[1; 8]))));
    keys.extend(
        [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8), (11, 8), (12, 8)].map(|(kind, len)| (kind, vec![1; len])),
    );
    let tensors: [(&str, &[u64], u32, u64); 4] =
        [("a", &[4], 0, 0), ("b", &[32, 2], 8, 32), ("c", &[3, 1, 2], 1, 128), ("d", &[5], 77, 160)];
    for (name, key_count, tensor_count) in [("empty", 0, 0), ("keys", keys.len(), 0), ("tensors", 1, tensors.len())] {
        let mut file = [&b"GGUF\x03\0\0\0"[..], &(tensor_count as u64).to_le_bytes(), &(key_count as u64).to_le_bytes()].concat();
        for (index, (kind, value)) in keys[..key_count].iter().enumerate() {
            let key = if index == 0 { "general.architecture".to_owned() } else { format!("key.{index}") };
            file.extend([&text(&key)[..], &kind.to_le_bytes(), value].concat());
        }
        for (name, dims, kind, offset) in &tensors[..tensor_count] {
            file.extend([&text(name)[..], &(dims.len() as u32).to_le_bytes()].concat());
            dims.iter().for_each(|dim| file.extend(dim.to_le_bytes()));
            file.extend([&kind.to_le_bytes()[..], &offset.to_le_bytes()].concat());
        }
        file.resize(file.len().next_multiple_of(32) + if tensor_count == 0 { 0 } else { 192 }, 0);
        fs::write(folder.join(name), file)?;
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
