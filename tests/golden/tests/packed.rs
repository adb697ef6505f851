//! A model whose layers are packed in formats of their own gives the bits of the one that stores their numbers in f32. The numbers are
//! decoded here, by the formats' definitions.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use coli_test_common::{built, fixture};
use coli_test_golden::{append, cases, open};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

/// A tensor's type, shape and bytes.
type Stored = (Dtype, Vec<usize>, Vec<u8>);
type Model = BTreeMap<String, Stored>;

fn f32s(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A matrix, its packed tensors under their names, and its numbers as these have them.
struct Packer<'a> {
    name: &'a str,
    rows: usize,
    cols: usize,
    numbers: Vec<f32>,
}

impl Packer<'_> {
    /// Whole numbers to `most` and a scale a row, in the source engine's form: flat, and nothing says what they are.
    fn whole(&self, most: f32, pack: impl Fn(&[i8]) -> Vec<u8>) -> (Model, Vec<f32>) {
        let (mut values, mut scales, mut decoded) = (vec![], vec![], vec![]);
        for row in self.numbers.chunks_exact(self.cols) {
            let scale = row.iter().fold(0f32, |largest, number| largest.max(number.abs())) / most;
            let whole: Vec<i8> = row.iter().map(|number| (number / scale).round() as i8).collect();
            decoded.extend(whole.iter().map(|whole| f32::from(*whole) * scale));
            values.extend(pack(&whole));
            scales.push(scale);
        }
        let (values, scales) = ((Dtype::U8, vec![values.len()], values), (Dtype::F32, vec![scales.len()], f32s(&scales)));
        (Model::from([(self.name.to_owned(), values), (format!("{}.qs", self.name), scales)]), decoded)
    }

    fn int8(&self) -> (Model, Vec<f32>) {
        self.whole(127.0, |row| row.iter().map(|whole| *whole as u8).collect())
    }

    fn int4(&self) -> (Model, Vec<f32>) {
        self.whole(7.0, |row| row.chunks(2).map(|pair| (pair[0] + 8) as u8 | ((pair[1] + 8) as u8) << 4).collect())
    }

    /// Four-bit floats and a power of two for every 32, as compressed-tensors stores them.
    fn mxfp4(&self) -> (Model, Vec<f32>) {
        let table: Vec<f32> =
            (0..16).map(|code| [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code % 8] * if code < 8 { 1.0 } else { -1.0 }).collect();
        let (mut codes, mut scales, mut decoded) = (vec![], vec![], vec![]);
        for group in self.numbers.chunks_exact(32) {
            let scale = group.iter().fold(0f32, |largest, number| largest.max(number.abs())).log2().floor() - 2.0;
            let (own, numbers) = nearest(&table, group, scale.exp2());
            codes.extend(own);
            decoded.extend(numbers);
            scales.push((scale + 127.0) as u8);
        }
        let packed: Vec<u8> = codes.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect();
        let (values, scales) = ((Dtype::U8, vec![self.rows, self.cols / 2], packed), (Dtype::U8, vec![self.rows, self.cols / 32], scales));
        (Model::from([(format!("{}_packed", self.name), values), (format!("{}_scale", self.name), scales)]), decoded)
    }

    /// FP8 with a scale for every 32 x 32.
    fn fp8(&self) -> (Model, Vec<f32>) {
        let table: Vec<f32> = (0..=255u8).map(e4m3).collect();
        let (mut codes, mut decoded) = (vec![0; self.numbers.len()], vec![0.0; self.numbers.len()]);
        let mut scales = vec![];
        for top in (0..self.rows).step_by(32) {
            for left in (0..self.cols).step_by(32) {
                let places: Vec<usize> =
                    (top..self.rows.min(top + 32)).flat_map(|row| (left..left + 32).map(move |col| row * self.cols + col)).collect();
                let block: Vec<f32> = places.iter().map(|at| self.numbers[*at]).collect();
                let scale = block.iter().fold(0f32, |largest, number| largest.max(number.abs())) / 448.0;
                let (own, numbers) = nearest(&table, &block, scale);
                for (at, (code, number)) in places.into_iter().zip(own.into_iter().zip(numbers)) {
                    (codes[at], decoded[at]) = (code, number);
                }
                scales.push(scale);
            }
        }
        let grid = vec![self.rows.div_ceil(32), self.cols.div_ceil(32)];
        let (values, scales) = ((Dtype::F8_E4M3, vec![self.rows, self.cols], codes), (Dtype::F32, grid, f32s(&scales)));
        (Model::from([(self.name.to_owned(), values), (format!("{}_scale_inv", self.name), scales)]), decoded)
    }
}

/// The codes nearest to numbers over a scale, and the numbers that they are.
fn nearest(table: &[f32], numbers: &[f32], scale: f32) -> (Vec<u8>, Vec<f32>) {
    let code = |number: &f32| {
        let off = |code: &usize| (table[*code] - number / scale).abs();
        (0..table.len()).filter(|code| !table[*code].is_nan()).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap()
    };
    numbers.iter().map(code).map(|code| (code as u8, table[code] * scale)).unzip()
}

/// By its definition: a sign, four bits of exponent with a bias of 7, three of mantissa; the last code of each sign is NaN.
fn e4m3(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let size = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa / 512.0,
        _ => (1.0 + mantissa / 8.0) * f32::powi(2.0, exponent - 7),
    };
    if code < 128 { size } else { -size }
}

fn packed(name: &str, (kind, shape, bytes): &Stored) -> (Model, Vec<f32>) {
    assert_eq!(*kind, Dtype::BF16);
    let numbers = bytes.as_chunks::<2>().0.iter().map(|upper| f32::from_bits(u32::from(u16::from_le_bytes(*upper)) << 16)).collect();
    let matrix = Packer { name, rows: shape[0], cols: shape[1], numbers };
    match (name.contains(".layers.1."), name.contains(".layers.2."), name.contains(".experts.")) {
        (true, _, true) => matrix.mxfp4(),
        (true, _, false) => matrix.fp8(),
        (_, true, true) => matrix.int4(),
        (_, true, false) => matrix.mxfp4(),
        _ => matrix.int8(),
    }
}

fn save(folder: &Path, config: &serde_json::Value, tensors: &Model) {
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let views = tensors.iter().map(|(name, (kind, shape, data))| (name, TensorView::new(*kind, shape.clone(), data).unwrap()));
    safetensors::serialize_to_file(views, None, &folder.join("model.safetensors")).unwrap();
}

#[test]
fn packed_layers_give_the_bits_of_their_numbers() {
    let case = cases().into_iter().find(|case| case.name == "olmoe/olmoe").unwrap();
    let bytes = std::fs::read(case.folder.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let (mut compact, mut plain) = (Model::new(), Model::new());
    for (name, view) in file.tensors() {
        let stored = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
        if stored.1.len() == 2 {
            let (tensors, numbers) = packed(&name, &stored);
            compact.extend(tensors);
            plain.insert(name, (Dtype::F32, stored.1, f32s(&numbers)));
        } else {
            compact.insert(name.clone(), stored.clone());
            plain.insert(name, stored);
        }
    }
    let mut config = fixture::json(&case.folder.join("config.json"));
    let outputs = |config: &serde_json::Value, tensors: &Model| {
        let folder = tempfile::tempdir_in(built::home()).unwrap();
        save(folder.path(), config, tensors);
        let mut engine = open(folder.path());
        let conv = engine.open_conversation();
        append(&mut engine, conv, &case.ids(), usize::MAX).bits()
    };
    let want = outputs(&config, &plain);
    config["quantization_config"] = serde_json::json!({"quant_method": "fp8", "weight_block_size": [32, 32]});
    assert!(outputs(&config, &compact) == want, "other bits");
    let size = |model: &Model| model.values().map(|(_, _, bytes)| bytes.len()).sum::<usize>();
    assert!(size(&compact) * 3 < size(&plain), "{} of {} bytes", size(&compact), size(&plain));
}
