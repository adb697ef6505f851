//! Nothing that a file says may panic, take memory that it does not have, or be read beyond its end.

use super::*;
use crate::testing::save_with_notes;
use proptest::prelude::*;

const NAMES: [&str; 9] = ["w", "w.qs", "w_scale", "w_scale_inv", "w_packed", "x.weight", "x.scale", "x.weight_packed", "x.weight_scale"];
const TYPES: [Dtype; 8] = [Dtype::U8, Dtype::I8, Dtype::F8_E4M3, Dtype::F8_E8M0, Dtype::F32, Dtype::BF16, Dtype::F16, Dtype::I64];
const FORMATS: [&str; 8] = ["int8-row", "int4-g64", "int3-g64", "mxfp4", "fp8-32x32-f32", "q8_0", "int4-row", "bf16"];

fn tensor() -> impl Strategy<Value = (usize, usize, Vec<usize>)> {
    let dim = prop_oneof![Just(0usize), 1usize..5, Just(16), Just(32), Just(33), Just(64), Just(128)];
    (0..NAMES.len(), 0..TYPES.len(), proptest::collection::vec(dim, 0..4))
}

fn notes() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let dim = prop_oneof![0u64..70, Just(128), Just(u64::MAX), Just(1 << 40)];
    let shape = (0..NAMES.len(), proptest::collection::vec(dim, 0..4))
        .prop_map(|(name, dims)| ("coli.shapes", json!({ NAMES[name]: dims }).to_string()));
    let format = (0..NAMES.len(), 0..FORMATS.len(), any::<bool>()).prop_map(|(name, format, ours)| {
        (if ours { "coli.formats" } else { "colibri.fmt" }, json!({ NAMES[name]: FORMATS[format] }).to_string())
    });
    let any = any::<String>().prop_map(|text| ("coli.formats", text));
    proptest::collection::vec(prop_oneof![5 => shape, 5 => format, 1 => any], 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_tensors_and_no_metadata_panic(
        tensors in proptest::collection::vec(tensor(), 0..6),
        notes in notes(),
        shape in (1u32..200, 0u32..140),
        cut in (0u32..40, 0u32..40, 0u32..40),
    ) {
        let dir = model(&[]);
        let mut stored: Vec<Stored> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (name, dtype, shape) in tensors.into_iter().filter(|(name, ..)| seen.insert(*name)) {
            let bytes = shape.iter().product::<usize>() * TYPES[dtype].bitsize() / 8;
            stored.push(Stored::raw(NAMES[name], TYPES[dtype], &shape, vec![0x11; bytes]));
        }
        let path = dir.path().join("model.safetensors");
        save_with_notes(&path, &stored, &notes);
        let len = std::fs::metadata(&path).unwrap().len();
        let _ = crate::survey(dir.path()).unwrap();
        let Ok(checkpoint) = open(dir.path()) else { return Ok(()) };
        let held: u64 = checkpoint.tensors().iter().map(|tensor| tensor.bytes).sum();
        prop_assert!(held <= len);
        let (rows, cols) = shape;
        for tensor in checkpoint.tensors() {
            let whole = View::tensor(&tensor.name);
            let rows_of = View::Rows { of: Box::new(whole.clone()), start: cut.0, count: cut.1, step: cut.2 };
            let twice = View::Concat(vec![whole.clone(), rows_of.clone()]);
            let dims = |at: usize| tensor.shape.get(at).map_or(1, |dim| *dim as u32);
            let stacked = dims(0).saturating_mul(dims(1));
            for (shape, view) in [
                ([rows, cols], whole.clone()),
                ([dims(0), dims(1)], whole.clone()),
                ([dims(0), dims(1).saturating_mul(2)], whole.clone()),
                ([stacked, dims(2)], whole.clone().stacked()),
                ([cut.1, dims(1)], rows_of),
                ([dims(0).saturating_add(cut.1), dims(1)], twice),
                ([rows, cols], whole.clone().blocks(cut.0, cut.1, cut.2, rows).flat()),
            ] {
                let Ok(weights) = load(&checkpoint, &describe(&shape, view), &mut |_, _| Ok(())) else { continue };
                let weight = weights.weight(WeightId(0)).unwrap();
                prop_assert_eq!(weight.decode().len(), weight.rows() * weight.cols());
            }
            // A tensor whose dimensions and format are both shown can be asked for as shown.
            let known = Format::by_name(&tensor.kind).is_some() && tensor.shape.len() == 2 && tensor.values.bytes > 0;
            if known {
                let whole = load(&checkpoint, &describe(&[dims(0), dims(1)], whole), &mut |_, _| Ok(()));
                prop_assert!(whole.is_ok(), "{:?}: {:?}", tensor, whole.err());
            }
        }
    }
}
