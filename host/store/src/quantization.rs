//! What `quantization_config` in a `config.json` says of stored weights. A model's plugin does not read it: which weights are packed, and
//! how, is in the files, and this is where what they could not be read by is refused by name.

use coli_base::{Error, Result};
use serde_json::{Map, Value};

const KEY: &str = "quantization_config";
/// The blocks of FP8 that there are formats of.
const BLOCKS: [[u64; 2]; 4] = [[128, 128], [32, 32], [1, 128], [1, 32]];
const READ: &str = "coli reads fp8, and compressed-tensors' mxfp4-pack-quantized";
const MXFP4: &str = "mxfp4-pack-quantized";

/// What it says that the files do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quantization {
    /// Rows and columns of a block of FP8, where they are said.
    pub(crate) block: Option<[u64; 2]>,
}

/// Reads the setting of a configuration, or that of the text model within it.
pub(crate) fn read(config: &Value) -> Result<Quantization> {
    let mut found = Quantization::default();
    for within in [Some(config), config.get("text_config")].into_iter().flatten() {
        let one = match within.get(KEY) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(settings)) => of(settings),
            Some(other) => Err(Error::refused(format!("is {other}, not an object"))),
        };
        let one = one.map_err(|error| Error::refused(format!("{KEY} {}", error.text)))?;
        if found.block.is_some() && one.block.is_some() && found != one {
            return Err(Error::refused(format!("{KEY} is given twice, with different blocks")));
        }
        found.block = found.block.or(one.block);
    }
    Ok(found)
}

fn of(settings: &Map<String, Value>) -> Result<Quantization> {
    match settings.get("quant_method") {
        Some(Value::String(method)) if method == "fp8" => fp8(settings),
        Some(Value::String(method)) if method == "compressed-tensors" => compressed_tensors(settings),
        Some(Value::String(method)) => Err(Error::refused(format!("has quant_method `{method}`, which coli does not read; {READ}"))),
        Some(other) => Err(Error::refused(format!("has quant_method {other}; {READ}"))),
        None => Err(Error::refused(format!("has no quant_method; {READ}"))),
    }
}

fn fp8(settings: &Map<String, Value>) -> Result<Quantization> {
    only(settings, "fmt", &["e4m3"])?;
    let block = match settings.get("weight_block_size") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let block = BLOCKS.into_iter().find(|[rows, cols]| *value == serde_json::json!([rows, cols]));
            Some(block.ok_or_else(|| Error::refused(format!("has weight_block_size {value}; there is {BLOCKS:?}")))?)
        }
    };
    Ok(Quantization { block })
}

fn compressed_tensors(settings: &Map<String, Value>) -> Result<Quantization> {
    let groups = settings.get("config_groups").and_then(Value::as_object);
    let each = || groups.into_iter().flat_map(Map::values);
    let formats = || each().filter_map(|group| group.get("format")).filter(|format| !format.is_null());
    // Groups have formats of their own where those are mixed.
    let own = settings.get("format").filter(|format| *format != "mixed-precision" || formats().next().is_none());
    if own.is_none() && formats().next().is_none() {
        return Err(Error::refused(format!("has no format; {READ}")));
    }
    if let Some(other) = own.into_iter().chain(formats()).find(|format| *format != MXFP4) {
        return Err(Error::refused(format!("has format {other}, which coli does not read; {READ}")));
    }
    if each().any(|group| group.pointer("/weights/symmetric") == Some(&Value::Bool(false))) {
        return Err(Error::refused("has weights that are not symmetric, which is not implemented"));
    }
    // Weights that were turned need activations turned likewise.
    if settings.get("transform_config").is_some_and(|transform| !is_empty(transform)) {
        return Err(Error::refused("has a transform_config, which is not implemented"));
    }
    match settings.get("sparsity_config") {
        Some(Value::Object(sparsity)) => only(sparsity, "format", &["dense"]).map(|()| Quantization::default()),
        _ => Ok(Quantization::default()),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A key that may be absent.
fn only(settings: &Map<String, Value>, key: &str, served: &[&str]) -> Result<()> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(()),
        Some(value) if served.iter().any(|served| value == served) => Ok(()),
        Some(other) => Err(Error::refused(format!("has {key} {other}; there is {}", served.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block(settings: Value) -> Option<[u64; 2]> {
        read(&json!({ "quantization_config": settings })).unwrap().block
    }

    fn refusal(settings: Value) -> String {
        let error = read(&json!({ "quantization_config": settings.clone() })).unwrap_err();
        assert_eq!(error.kind, coli_base::Kind::Refused);
        assert_eq!(read(&json!({"text_config": {"quantization_config": settings}})).unwrap_err(), error);
        assert!(error.text.starts_with("quantization_config "), "{error}");
        error.text
    }

    #[test]
    fn what_is_read_says_its_block() {
        assert_eq!(read(&json!({})).unwrap(), Quantization::default());
        assert_eq!(read(&json!([])).unwrap(), Quantization::default());
        assert_eq!(read(&json!({"quantization_config": null})).unwrap(), Quantization::default());
        // As published with FP8 releases.
        let release = json!({"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]});
        assert_eq!(block(release.clone()), Some([128, 128]));
        assert_eq!(
            read(&json!({"quantization_config": release, "text_config": {"quantization_config": release}})).unwrap().block,
            Some([128, 128])
        );
        let scales = json!({"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [32, 32], "ignored_layers": ["lm_head"]});
        assert_eq!(block(scales), Some([32, 32]));
        assert_eq!(block(json!({"quant_method": "fp8", "weight_block_size": null, "modules_to_not_convert": ["lm_head"]})), None);
        assert_eq!(block(json!({"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"})), None);
        let groups = json!({"group_0": {"format": "mxfp4-pack-quantized", "targets": ["Linear"]}, "group_1": {"format": null}});
        let mixed = json!({"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups,
            "sparsity_config": {}, "transform_config": {"config_groups": {}}, "quantization_status": "compressed"});
        assert_eq!(block(mixed), None);
    }

    #[test]
    fn what_is_not_read_is_refused_by_name() {
        for method in ["gptq", "awq", "bitsandbytes", "mxfp4", "modelopt", "fbgemm_fp8"] {
            assert!(refusal(json!({"quant_method": method, "bits": 4})).contains(&format!("quant_method `{method}`")));
        }
        let groups = json!({"a": {"weights": {"symmetric": false}}});
        for (settings, says) in [
            (json!({"quant_method": "compressed-tensors", "format": MXFP4, "config_groups": groups}), "symmetric"),
            (json!({"bits": 4}), "no quant_method"),
            (json!({"quant_method": 3}), "quant_method 3"),
            (json!("fp8"), "not an object"),
            (json!({"quant_method": "fp8", "fmt": "e5m2"}), "e5m2"),
            (json!({"quant_method": "fp8", "weight_block_size": [64, 64]}), "[64,64]"),
            (json!({"quant_method": "fp8", "weight_block_size": 128}), "weight_block_size 128"),
            (json!({"quant_method": "fp8", "weight_block_size": [128, 128, 1]}), "[128,128,1]"),
            (json!({"quant_method": "compressed-tensors"}), "no format"),
            (json!({"quant_method": "compressed-tensors", "format": "pack-quantized"}), "pack-quantized"),
            (json!({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}), "nvfp4-pack-quantized"),
            (json!({"quant_method": "compressed-tensors", "format": "mixed-precision"}), "mixed-precision"),
            (
                json!({"quant_method": "compressed-tensors", "format": MXFP4, "sparsity_config": {"format": "sparse-24-bitmask"}}),
                "sparse-24",
            ),
            (
                json!({"quant_method": "compressed-tensors", "format": MXFP4, "transform_config": {"config_groups": {"u": {}, "v": 1}}}),
                "transform",
            ),
            (
                json!({"quant_method": "compressed-tensors", "format": MXFP4, "config_groups": {"a": {"format": "float-quantized"}}}),
                "float-quantized",
            ),
        ] {
            assert!(refusal(settings.clone()).contains(says), "{settings}");
        }
        let two = json!({"quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 32]},
            "text_config": {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}});
        assert!(read(&two).unwrap_err().text.contains("twice"));
    }
}
