//! Numbers that nobody here decoded: the cases of the formats, stored as containers store them, and files that packages wrote.

use std::path::{Path, PathBuf};

use super::*;
use coli_plugin_api::describe::ExpertView;
use coli_plugin_api::program::GroupId;
use coli_shaders::contract::ExpertMatrix;

/// A matrix of which some rows are known.
struct Case {
    format: Format,
    rows: usize,
    cols: usize,
    values: Vec<u8>,
    scales: Vec<u8>,
    /// Known rows, and their numbers.
    at: Vec<usize>,
    want: Vec<Vec<f32>>,
}

impl Case {
    fn shape(&self) -> [u32; 2] {
        [self.rows as u32, self.cols as u32]
    }

    fn check(&self, dir: &TempDir, format: Format) {
        let loaded = weight(dir, &self.shape(), View::tensor("w"));
        assert_eq!((loaded.format, loaded.rows, loaded.cols), (format, self.rows, self.cols));
        for (row, want) in self.at.iter().zip(&self.want) {
            assert_same(&loaded.numbers[row * self.cols..][..self.cols], want, format.name());
        }
        if self.rows > 2 {
            self.check_cut(dir);
        }
    }

    /// Without the first row and the last one.
    fn check_cut(&self, dir: &TempDir) {
        let [rows, cols] = self.shape();
        let view = View::Rows { of: Box::new(View::tensor("w")), start: 1, count: rows - 2, step: 1 };
        let loaded = weight(dir, &[rows - 2, cols], view);
        assert_eq!(loaded.format.scale_rows(), 1);
        for (row, want) in self.at.iter().zip(&self.want).filter(|(row, _)| (1..self.rows - 1).contains(row)) {
            assert_same(&loaded.numbers[(row - 1) * self.cols..][..self.cols], want, self.format.name());
        }
    }
}

fn bytes(case: &Value, key: &str) -> Vec<u8> {
    let digits = case[key].as_str().unwrap().as_bytes();
    let digit = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits.as_chunks::<2>().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

fn cases(folder: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shaders/src/formats").join(folder).join("cases.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(!cases.is_empty());
    cases.iter().map(case).collect()
}

fn case(case: &Value) -> Case {
    let counts = |key: &str| case[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect::<Vec<_>>();
    let [rows, cols] = counts("shape")[..] else { panic!() };
    let (at, known) = (counts("at"), bytes(case, "values"));
    let row_bytes = known.len() / at.len();
    let mut values = vec![0; rows * row_bytes];
    for (row, known) in at.iter().zip(known.chunks_exact(row_bytes)) {
        values[row * row_bytes..][..row_bytes].copy_from_slice(known);
    }
    let format = Format::by_name(case["format"].as_str().unwrap()).unwrap();
    let want = numbers(&bytes(case, "expected")).chunks_exact(cols).map(<[f32]>::to_vec).collect();
    Case { format, rows, cols, values, scales: bytes(case, "scales"), at, want }
}

#[test]
fn whole_numbers_are_read_flat_and_in_rows_as_decoded_by_others() {
    for case in ["int8", "int4", "int3"].into_iter().flat_map(cases) {
        let (row, group) = (case.values.len() / case.rows, case.scales.len() / 4 / case.rows);
        let shapes = [(vec![case.values.len()], vec![case.scales.len() / 4]), (vec![case.rows, row], vec![case.rows, group])];
        for (values, scales) in shapes {
            for dtype in [Dtype::U8, Dtype::I8] {
                let tensors =
                    [Stored::raw("w", dtype, &values, case.values.clone()), Stored::raw("w.qs", Dtype::F32, &scales, case.scales.clone())];
                let stated = model_with_notes(&tensors, &[note("coli.formats", json!(case.format.name()))]);
                case.check(&stated, case.format);
                let shaped = [note("coli.formats", json!(case.format.name())), note("coli.shapes", json!([case.rows, case.cols]))];
                case.check(&model_with_notes(&tensors, &shaped), case.format);
                let silent = model(&tensors);
                if case.format.name().ends_with("-tc") {
                    // Nothing but the converter's note tells it from offset pairs.
                    std::fs::write(silent.path().join("some_meta.json"), r#"{"ebits": 4, "expert_gs": 64}"#).unwrap();
                }
                case.check(&silent, case.format);
            }
        }
    }
}

#[test]
fn mxfp4_is_read_under_all_its_names_as_decoded_by_others() {
    for case in cases("mxfp4") {
        let (row, groups) = (case.cols / 2, case.cols / 32);
        let pair = |values: &str, scales: &str, types: (Dtype, Dtype)| {
            [
                Stored::raw(values, types.0, &[case.rows, row], case.values.clone()),
                Stored::raw(scales, types.1, &[case.rows, groups], case.scales.clone()),
            ]
        };
        for scales in [Dtype::U8, Dtype::F8_E8M0] {
            for values in [Dtype::U8, Dtype::I8] {
                case.check(&model(&pair("w", "w.qs", (values, scales))), Format::MXFP4);
                case.check(&model(&pair("w", "w_scale", (values, scales))), Format::MXFP4);
                let named = model(&pair("x.weight", "x.scale", (values, scales)));
                assert_eq!(weight(&named, &case.shape(), View::tensor("x.weight")).format, Format::MXFP4);
            }
            case.check(&model(&pair("w_packed", "w_scale", (Dtype::U8, scales))), Format::MXFP4);
        }
    }
}

#[test]
fn fp8_of_every_block_is_read_as_decoded_by_others() {
    for case in cases("fp8") {
        let name = case.format.name();
        let (width, types) = match name.rsplit('-').next().unwrap() {
            "f32" => (4, vec![Dtype::F32]),
            "bf16" => (2, vec![Dtype::BF16]),
            _ => (1, vec![Dtype::U8, Dtype::F8_E8M0]),
        };
        let high = case.rows.div_ceil(case.format.scale_rows());
        let grid = [high, case.scales.len() / width / high];
        for dtype in types {
            let values = Stored::raw("w", Dtype::F8_E4M3, &[case.rows, case.cols], case.values.clone());
            let dir = model(&[values, Stored::raw("w_scale_inv", dtype, &grid, case.scales.clone())]);
            case.check(&dir, case.format);
            let block = name.strip_prefix("fp8-").unwrap().split('-').next().unwrap();
            if let Some((rows, cols)) = block.split_once('x') {
                let block = [rows, cols].map(|side| side.parse::<u64>().unwrap());
                let config = json!({"quantization_config": {"quant_method": "fp8", "weight_block_size": block}});
                std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
                case.check(&dir, case.format);
                let wrong = if block == [32, 32] { [128, 128] } else { [32, 32] };
                let config = json!({"quantization_config": {"quant_method": "fp8", "weight_block_size": wrong}});
                std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
                assert!(refusal(&dir, &case.shape()).contains(&format!("fp8-{}x{}-", wrong[0], wrong[1])));
            }
        }
    }
}

fn reference(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reference").join(name)
}

/// The numbers of a tensor that a package decoded.
fn decoded(folder: &str, name: &str) -> Vec<f32> {
    let bytes = std::fs::read(reference(folder).join("expected.safetensors")).unwrap();
    numbers(safetensors::SafeTensors::deserialize(&bytes).unwrap().tensor(name).unwrap().data())
}

#[test]
fn what_compressed_tensors_wrote_is_read() {
    let checkpoint = open(&reference("mxfp4")).unwrap();
    let tensors: Vec<_> = checkpoint.tensors().iter().map(|t| (t.name.as_str(), t.kind.as_str(), &t.shape[..], t.bytes)).collect();
    let (up, down) = ("model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.mlp.experts.1.down_proj.weight");
    assert_eq!(
        tensors,
        [(up, "mxfp4", &[3, 96][..], 3 * 48 + 9), (down, "mxfp4", &[5, 32], 5 * 16 + 5), ("model.norm.weight", "f32", &[4], 16)]
    );
    for (name, shape) in [(up, vec![3, 96]), (down, vec![5, 32]), ("model.norm.weight", vec![4])] {
        let weights = load(&checkpoint, &describe(&shape, View::tensor(name)), &mut |_, _| Ok(())).unwrap();
        assert_same(&weights.weight(WeightId(0)).unwrap().decode(), &decoded("mxfp4", name), name);
    }
}

#[test]
fn what_transformers_wrote_is_read() {
    let checkpoint = open(&reference("fp8")).unwrap();
    let (gate, down) = ("model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.experts.down_proj");
    let tensors: Vec<_> = checkpoint.facts().into_iter().map(|t| (t.name, t.kind, t.shape)).collect();
    let fp8 = "fp8-32x32-f32".to_owned();
    let expected = [
        ("lm_head.weight".into(), "f32".into(), vec![2, 4]),
        (down.into(), fp8.clone(), vec![2, 32, 32]),
        (gate.into(), fp8, vec![64, 32]),
    ];
    assert_eq!(tensors, expected);
    let rows = View::Rows { of: Box::new(View::tensor(gate)), start: 28, count: 8, step: 1 };
    let weights = load(&checkpoint, &describe(&[8, 32], rows), &mut |_, _| Ok(())).unwrap();
    let rows = weights.weight(WeightId(0)).unwrap();
    assert_eq!(rows.format(), Format::FP8_1X32_F32);
    assert_same(&rows.decode(), &decoded("fp8", &format!("{gate} 28..36")), gate);
    let fused = || ExpertView::Fused { tensor: down.into(), start: 0 };
    let group = crate::testing::experts(2, 32, 32, fused(), fused(), fused());
    let weights = load(&checkpoint, &group, &mut |_, _| Ok(())).unwrap();
    for expert in 0..2 {
        let matrix = weights.expert(GroupId(0), 0, expert, ExpertMatrix::Down).unwrap();
        assert_eq!(matrix.format(), Format::FP8_32X32_F32);
        assert_same(&matrix.decode(), &decoded("fp8", down)[expert as usize * 1024..][..1024], down);
    }
}
