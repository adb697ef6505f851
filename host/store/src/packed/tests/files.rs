//! What of a file makes one tensor, what others see of it, and what metadata may state.

use super::*;
use crate::Plan;
use crate::survey;
use crate::testing::save;

#[test]
fn scales_are_part_of_their_tensor() {
    let dir = model(&[
        Stored::raw("w", Dtype::U8, &[2, 128], vec![0; 256]),
        Stored::raw("w.qs", Dtype::F32, &[2, 2], vec![0; 16]),
        Stored::f32("v_scale", &[2]),
        Stored::bf16("v", &[2]),
    ]);
    let checkpoint = open(dir.path()).unwrap();
    let facts: Vec<_> = checkpoint.facts().into_iter().map(|fact| (fact.name, fact.kind, fact.shape)).collect();
    // Only packed types have scales: a tensor may be named like those of another.
    let own = |name: &str, kind: &str, shape: &[u64]| (name.to_owned(), kind.to_owned(), shape.to_vec());
    assert_eq!(facts, [own("v", "bf16", &[2]), own("v_scale", "f32", &[2]), own("w", "int8-g64", &[2, 128])]);
    assert_eq!(checkpoint.tensors()[2].bytes, 256 + 16);
    assert!(checkpoint.tensors()[2].is_served());
    let plan = Plan::new(&checkpoint, &describe(&[2, 128], View::tensor("w"))).unwrap();
    assert_eq!(plan.unused_note().unwrap(), "2 stored tensors are not used, `v` among them");
    assert_eq!(plan.bytes(), 272);
    let found = survey(dir.path()).unwrap();
    assert_eq!((found.checkpoint.tensors().len(), found.missing), (3, vec!["tokenizer.json".to_owned()]));
}

#[test]
fn values_and_scales_may_be_in_two_files() {
    let dir = model(&[]);
    std::fs::remove_file(dir.path().join("model.safetensors")).unwrap();
    save(&dir.path().join("1.safetensors"), &[Stored::raw("w", Dtype::I8, &[2, 3], vec![1, 2, 3, 255, 254, 253])]);
    save(&dir.path().join("2.safetensors"), &[Stored::raw("w.qs", Dtype::F32, &[2], f32s(&[0.5, 2.0]))]);
    assert_eq!(weight(&dir, &[2, 3], View::tensor("w")).numbers, [0.5, 1.0, 1.5, -2.0, -4.0, -6.0]);
    let index = json!({"weight_map": {"w": "1.safetensors", "w.qs": "2.safetensors"}});
    std::fs::write(dir.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    assert_eq!(weight(&dir, &[2, 3], View::tensor("w")).numbers[0], 0.5);
    // Without its scales it is bytes of an unread type.
    std::fs::remove_file(dir.path().join("model.safetensors.index.json")).unwrap();
    std::fs::remove_file(dir.path().join("2.safetensors")).unwrap();
    assert!(refusal(&dir, &[2, 3]).contains("tensor `w` is stored as i8, which coli does not read"));
}

#[test]
fn what_is_shown_is_what_bytes_leave_no_other_choice_for() {
    let shown = |tensors: &[Stored], notes: &[(&str, String)]| {
        let dir = model_with_notes(tensors, notes);
        let fact = open(dir.path()).unwrap().facts().remove(0);
        (fact.kind, fact.shape)
    };
    let matrix = |row: usize, scales: usize| {
        [Stored::raw("w", Dtype::U8, &[4, row], vec![0; 4 * row]), Stored::raw("w.qs", Dtype::F32, &[4, scales], vec![0; 16 * scales])]
    };
    let is = |kind: &str, shape: &[u64]| (kind.to_owned(), shape.to_vec());
    assert_eq!(shown(&matrix(256, 4), &[]), is("int8-g64", &[4, 256]));
    assert_eq!(shown(&matrix(128, 4), &[]), is("int4-g64", &[4, 256]));
    assert_eq!(shown(&matrix(96, 4), &[]), is("int3-g64", &[4, 256]));
    // Rows of 256 in bytes, or of 512 in halves of bytes: nothing can tell.
    assert_eq!(shown(&matrix(256, 1), &[]), is("u8+f32", &[4, 256]));
    assert_eq!(shown(&flat(1024, 4), &[]), is("u8+f32", &[1024]));
    assert_eq!(shown(&matrix(256, 1), &[note("coli.formats", json!("int4-row"))]), is("int4-row", &[4, 512]));
    assert_eq!(shown(&matrix(256, 1), &[note("colibri.fmt", json!("int8-row"))]), is("int8-row", &[4, 256]));
    let fused = [note("coli.formats", json!("int4-row")), note("coli.shapes", json!([2, 2, 511]))];
    assert_eq!(shown(&matrix(256, 1), &fused), is("int4-row", &[2, 2, 511]));
    assert_eq!(shown(&flat(1024, 4), &fused), is("int4-row", &[2, 2, 511]));
    assert_eq!(shown(&matrix(256, 1), &[note("coli.shapes", json!([4, 512]))]), is("int4-row", &[4, 512]));
}

/// One stored form, whose rows the model knows.
#[test]
fn the_models_rows_decide() {
    for (cols, format) in [(128, Format::INT8_ROW), (256, Format::INT4_ROW)] {
        assert_eq!(weight(&model(&flat(4 * 128, 4)), &[4, cols], View::tensor("w")).format, format);
    }
    let dir = model(&flat(4 * 48, 4 * 2));
    assert_eq!(weight(&dir, &[4, 128], View::tensor("w")).format, Format::INT3_G64);
    let text = refusal(&dir, &[4, 200]);
    assert!(text.starts_with("w: tensor `w`, [192] of 192 bytes with 32 bytes of scales, is not [4, 200] in int8-row,"), "{text}");
    // 16 bytes a row and a scale: 32 pairs of four bits; but 48 numbers of three bits in 24 bytes are 48 of four bits too.
    assert_eq!(weight(&model(&flat(4 * 16, 4)), &[4, 32], View::tensor("w")).format, Format::INT4_ROW);
    let text = refusal(&model(&flat(4 * 24, 4)), &[4, 48]);
    assert!(text.contains("more than one format: int4-row, int4-g64, int3-g64; `coli.formats`"), "{text}");
    // The planar order only where nothing else fits, as here, where rows are padded.
    assert_eq!(weight(&model(&flat(4 * 32, 4)), &[4, 32], View::tensor("w")).format, Format::INT8_ROW);
    assert_eq!(weight(&model(&flat(4 * 64, 8)), &[4, 100], View::tensor("w")).format, Format::INT4_G64_PLANAR);
    // Two rows of 256 with two scales may be blocks of FP8; the source engine reads int8, unless the file says it.
    assert_eq!(weight(&model(&flat(512, 2)), &[2, 256], View::tensor("w")).format, Format::INT8_ROW);
    let stated = model_with_notes(&flat(512, 2), &[note("colibri.fmt", json!("fp8-e4m3-b128"))]);
    assert_eq!(weight(&stated, &[2, 256], View::tensor("w")).format, Format::FP8_128X128_F32);
    assert_eq!(weight(&model(&flat(256 * 256, 4)), &[256, 256], View::tensor("w")).format, Format::FP8_128X128_F32);
}

#[test]
fn blocks_with_their_scales_inside_are_read_where_the_file_states_them() {
    // Q8_0 by hand: a half-precision 0.5, then 32 signed bytes.
    let row: Vec<u8> = [0x00, 0x38].into_iter().chain((0..32).map(|at| (at as i8 - 16) as u8)).collect();
    let notes = [note("coli.formats", json!("q8_0")), note("coli.shapes", json!([1, 32]))];
    let dir = model_with_notes(&[Stored::raw("w", Dtype::U8, &[34], row)], &notes);
    let loaded = weight(&dir, &[1, 32], View::tensor("w"));
    assert_eq!((loaded.format, loaded.numbers[0], loaded.numbers[31]), (Format::Q8_0, -8.0, 7.5));
}

#[test]
fn what_metadata_states_must_fit() {
    let refusal = |tensors: &[Stored], notes: &[(&'static str, String)]| {
        let dir = model_with_notes(tensors, notes);
        let error = open(dir.path()).unwrap_err();
        assert_eq!(error.kind, coli_base::Kind::Refused);
        let found = survey(dir.path()).unwrap();
        assert!(found.missing.iter().any(|missing| missing.contains("`w`")), "{:?}", found.missing);
        error.text
    };
    let format = |name: &str| note("coli.formats", json!(name));
    let shape = |dims: &[u64]| note("coli.shapes", json!(dims));
    let text = refusal(&flat(512, 4), &[format("int8-row"), shape(&[4, 256])]);
    assert_eq!(text, "tensor `w`, [512] of 512 bytes with 16 bytes of scales, is not [4, 256] in int8-row");
    for dims in [&[4, 127][..], &[3, 128], &[0, 128], &[u64::MAX, u64::MAX], &[u64::MAX, 2, 128], &[512], &[]] {
        assert!(refusal(&flat(512, 4), &[format("int8-row"), shape(dims)]).contains("not"), "{dims:?}");
        // A row of 512 may be four blocks of FP8.
        assert!(dims == [512] || refusal(&flat(512, 4), &[shape(dims)]).contains("not"), "{dims:?}");
    }
    let text = refusal(&flat(512, 4), &[format("mxfp4")]);
    assert_eq!(text, "tensor `w` is u8+f32, its file's metadata states mxfp4");
    let text = refusal(&[Stored::bf16("w", &[2])], &[format("int8-row")]);
    assert_eq!(text, "tensor `w` is stored as bf16, its file's metadata states int8-row");
    let text = refusal(&[Stored::bf16("w", &[2])], &[shape(&[1, 2])]);
    assert_eq!(text, "tensor `w` is [2], its file's metadata states [1, 2]");
    let text = refusal(&[Stored::raw("w", Dtype::I64, &[1], vec![0; 8])], &[format("int8-row")]);
    assert_eq!(text, "tensor `w` is stored as i64, its file's metadata states int8-row");
    let signed = [Stored::raw("w", Dtype::I8, &[512], vec![0; 512]), Stored::raw("w.qs", Dtype::F32, &[2], vec![0; 8])];
    assert!(refusal(&signed, &[note("colibri.fmt", json!("fp8-e4m3"))]).contains("states fp8-e4m3"));
    // Two keys, or two names, that differ.
    assert!(refusal(&flat(512, 4), &[format("int8-row"), note("colibri.fmt", json!("int4-row"))]).contains("as int8-row and as int4-row"));
    for (key, value) in
        [("coli.formats", json!("int9")), ("colibri.fmt", json!("int9")), ("coli.formats", json!(3)), ("coli.shapes", json!("x"))]
    {
        assert!(refusal(&flat(512, 4), &[note(key, value)]).contains(key));
    }
    // What is consistent is read: a name of the source engine's, confirmed or made exact by one of ours.
    let both = [note("colibri.fmt", json!("int4-row")), note("coli.formats", json!("int4-row-tc"))];
    assert_eq!(weight(&model_with_notes(&flat(512, 4), &both), &[4, 256], View::tensor("w")).format, Format::INT4_ROW_TC);
    assert_eq!(
        weight(&model_with_notes(&[Stored::f32("w", &[2, 2])], &[note("colibri.fmt", json!("f32"))]), &[2, 2], View::tensor("w")).rows,
        2
    );
}

#[test]
fn metadata_that_is_no_map_is_refused_with_the_file() {
    for (key, text) in [("coli.formats", "[]"), ("coli.shapes", "{"), ("colibri.fmt", "3"), ("coli.formats", "")] {
        let dir = model_with_notes(&flat(4, 1), &[(key, text.to_owned())]);
        let error = open(dir.path()).unwrap_err().text;
        assert!(error.contains("model.safetensors`: its metadata `") && error.contains(key), "{error}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(open(model_with_notes(&flat(4, 1), &[("coli.shapes", deep)]).path()).unwrap_err().text.contains("coli.shapes"));
}

#[test]
fn what_is_stated_and_not_read_is_refused_when_it_is_used() {
    for name in ["int2-row", "e8-iq3-lattice", "int4-rans256-g0"] {
        let dir = model_with_notes(&flat(512, 4), &[note("colibri.fmt", json!(name))]);
        assert!(!open(dir.path()).unwrap().tensors()[0].is_served());
        assert_eq!(refusal(&dir, &[4, 512]), format!("w: tensor `w` is stored as {name}, which coli does not read"));
    }
    // A scale of a type that none has.
    let scales = Stored::raw("w_scale", Dtype::F8_E4M3, &[4, 2], vec![0; 8]);
    let dir = model(&[Stored::raw("w", Dtype::U8, &[4, 16], vec![0; 64]), scales]);
    assert!(refusal(&dir, &[4, 32]).contains("tensor `w` is stored as u8+f8_e4m3, which coli does not read"));
    // A scale for all of a larger tensor.
    let dir = model(&[Stored::raw("w", Dtype::F8_E4M3, &[200, 16], vec![0; 3200]), Stored::raw("w_scale", Dtype::F32, &[], vec![0; 4])]);
    let text = refusal(&dir, &[200, 16]);
    assert!(text.contains("[200, 16] of 3200 bytes with 4 bytes of scales, is not [200, 16] in fp8-128x128-f32"), "{text}");
}

#[test]
fn a_tensor_has_one_name_and_one_tensor_of_scales() {
    let u8s = |name: &str| Stored::raw(name, Dtype::U8, &[2], vec![0; 2]);
    let f32s = |name: &str| Stored::f32(name, &[2]);
    for (tensors, says) in [
        (vec![u8s("w"), f32s("w.qs"), f32s("w_scale")], "tensor `w` has scales twice, in `w.qs` and in `w_scale`"),
        (vec![u8s("w_packed"), u8s("w_scale"), f32s("w")], "tensor `w_packed` is stored as `w` too"),
        (vec![u8s("w"), u8s("w.qs"), f32s("w.qs.qs")], "are scales of each other"),
    ] {
        let dir = model(&tensors);
        let error = open(dir.path()).unwrap_err();
        assert!(error.kind == coli_base::Kind::Refused && error.text.contains(says), "{error}");
        assert!(survey(dir.path()).unwrap().missing.iter().any(|missing| missing.contains(says)));
    }
}

#[test]
fn what_a_configuration_says_of_quantization_is_for_the_store() {
    let dir = model(&[Stored::f32("w", &[2, 2])]);
    let config = |settings: Value| {
        std::fs::write(dir.path().join("config.json"), json!({"quantization_config": settings}).to_string()).unwrap();
        open(dir.path())
    };
    assert!(config(json!({"quant_method": "fp8"})).is_ok());
    for method in ["gptq", "awq", "bitsandbytes"] {
        let error = config(json!({"quant_method": method})).unwrap_err().text;
        assert!(error.contains(&format!("config.json`: quantization_config has quant_method `{method}`")), "{error}");
        let missing = survey(dir.path()).unwrap().missing;
        assert!(missing[0].contains(method), "{missing:?}");
    }
}
