//! Matrices that are cut from packed tensors keep the scales of their rows. Every code is 1, so that each number is its scale.

use super::*;
use coli_plugin_api::describe::ExpertView;
use coli_plugin_api::program::GroupId;
use coli_shaders::contract::ExpertMatrix;

/// 1 in e4m3.
const ONE: u8 = 0x38;

/// FP8 of `[rows, cols]` in blocks of 32 x 32, whose scales count from `from`.
fn blocks(name: &str, rows: usize, cols: usize, from: f32) -> [Stored; 2] {
    let grid = [rows.div_ceil(32), cols.div_ceil(32)];
    let scales: Vec<f32> = (0..grid[0] * grid[1]).map(|at| from + at as f32).collect();
    [
        Stored::raw(name, Dtype::F8_E4M3, &[rows, cols], vec![ONE; rows * cols]),
        Stored::raw(&format!("{name}_scale_inv"), Dtype::F32, &grid, f32s(&scales)),
    ]
}

/// `a` of 100 rows with scales 1, 2 | 3, 4 | 5, 6 | 7, 8; `b` of 64 with 101, 102 | 103, 104; `c` of 40 with 201, 202 | 203, 204.
fn three() -> TempDir {
    let tensors = [blocks("a", 100, 40, 1.0), blocks("b", 64, 40, 101.0), blocks("c", 40, 40, 201.0)];
    model(&tensors.into_iter().flatten().collect::<Vec<_>>())
}

/// Checks the first scale of each row, and that the second one is the next number.
fn check(view: View, format: Format, first: &[f32]) {
    let loaded = weight(&three(), &[first.len() as u32, 40], view);
    assert_eq!(loaded.format, format);
    for (row, first) in loaded.numbers.chunks_exact(40).zip(first) {
        let want: Vec<f32> = (0..40).map(|col| if col < 32 { *first } else { first + 1.0 }).collect();
        assert_eq!(row, want);
    }
}

fn of_a(rows: impl Iterator<Item = usize>) -> Vec<f32> {
    rows.map(|row| 1.0 + 2.0 * (row / 32) as f32).collect()
}

fn rows(start: u32, count: u32, step: u32) -> View {
    View::Rows { of: Box::new(View::tensor("a")), start, count, step }
}

#[test]
fn rows_that_are_whole_blocks_keep_their_format() {
    check(View::tensor("a"), Format::FP8_32X32_F32, &of_a(0..100));
    check(rows(32, 64, 1), Format::FP8_32X32_F32, &of_a(32..96));
    check(rows(64, 36, 1), Format::FP8_32X32_F32, &of_a(64..100));
    check(rows(64, 3, 1), Format::FP8_32X32_F32, &of_a(64..67));
    check(View::tensor("a").blocks(0, 32, 2, 64), Format::FP8_32X32_F32, &of_a((0..32).chain(64..96)));
    let joined = View::Concat(vec![View::tensor("b"), View::tensor("a")]);
    let b = [101.0, 103.0].into_iter().flat_map(|scale| [scale; 32]);
    check(joined, Format::FP8_32X32_F32, &b.chain(of_a(0..100)).collect::<Vec<_>>());
    // Two parts that continue one another are one.
    let halves = View::Concat(vec![rows(0, 50, 1), rows(50, 50, 1)]);
    check(halves, Format::FP8_32X32_F32, &of_a(0..100));
}

#[test]
fn rows_that_are_cut_through_blocks_have_scales_each() {
    check(rows(1, 99, 1), Format::FP8_1X32_F32, &of_a(1..100));
    check(rows(31, 2, 1), Format::FP8_1X32_F32, &of_a(31..33));
    check(rows(0, 34, 3), Format::FP8_1X32_F32, &of_a((0..100).step_by(3)));
    check(View::tensor("a").blocks(16, 32, 2, 40), Format::FP8_1X32_F32, &of_a((16..48).chain(56..88)));
    // The first part ends within a block, so that the second one begins within one of the whole.
    let joined = View::Concat(vec![View::tensor("c"), View::tensor("a")]);
    let c = [201.0; 32].into_iter().chain([203.0; 8]);
    check(joined, Format::FP8_1X32_F32, &c.chain(of_a(0..100)).collect::<Vec<_>>());
}

#[test]
fn experts_in_one_tensor_begin_new_rows_of_scales() {
    // Three experts of 40 rows: two rows of scales each, the second for 8 rows.
    let scales: Vec<f32> = (1..=6).map(|scale| scale as f32).collect();
    let dir = model(&[
        Stored::raw("all", Dtype::F8_E4M3, &[3, 40, 32], vec![ONE; 3 * 40 * 32]),
        Stored::raw("all_scale_inv", Dtype::F32, &[3, 2, 1], f32s(&scales)),
        Stored::f32("down", &[3, 32, 20]),
    ]);
    let fused = |tensor: &str, start: u32| ExpertView::Fused { tensor: tensor.into(), start };
    let group = crate::testing::experts(3, 32, 20, fused("all", 0), fused("all", 20), fused("down", 0));
    let weights = load(&open(dir.path()).unwrap(), &group, &mut |_, _| Ok(())).unwrap();
    for expert in 0..3u32 {
        let of = |matrix| weights.expert(GroupId(0), 0, expert, matrix).unwrap();
        let (gate, up) = (of(ExpertMatrix::Gate), of(ExpertMatrix::Up));
        assert_eq!((gate.format(), up.format()), (Format::FP8_32X32_F32, Format::FP8_1X32_F32));
        let scale = |row: usize| 1.0 + 2.0 * expert as f32 + (row / 32) as f32;
        let want = |from: usize| (from..from + 20).flat_map(|row| [scale(row); 32]).collect::<Vec<f32>>();
        assert_eq!((gate.decode(), up.decode()), (want(0), want(20)));
    }
    let stacked = weight(&dir, &[120, 32], View::tensor("all").stacked());
    assert_eq!(stacked.format, Format::FP8_1X32_F32);
    let want: Vec<f32> = (0..120).flat_map(|row| [1.0 + (row / 40 * 2 + row % 40 / 32) as f32; 32]).collect();
    assert_eq!(stacked.numbers, want);
}

/// Packed experts whose values say nothing of a row's length: the group's own numbers do.
#[test]
fn packed_experts_in_one_tensor_are_found_by_the_models_rows() {
    // Two experts, 3 rows of 8 numbers in 4 bytes: 0x98 is 0 then 1, 0xba is 2 then 3.
    let values: Vec<u8> = [0x98u8, 0x98, 0x98, 0x98].into_iter().chain([0xba; 4]).cycle().take(2 * 3 * 4).collect();
    let scales: Vec<f32> = (1..=6).map(|scale| scale as f32).collect();
    let dir = model(&[
        Stored::raw("gate_up", Dtype::U8, &[2, 3, 4], values),
        Stored::raw("gate_up.qs", Dtype::F32, &[2, 3], f32s(&scales)),
        Stored::f32("down", &[2, 8, 1]),
    ]);
    let fused = |tensor: &str, start: u32| ExpertView::Fused { tensor: tensor.into(), start };
    let group = crate::testing::experts(2, 8, 1, fused("gate_up", 0), fused("gate_up", 2), fused("down", 0));
    let weights = load(&open(dir.path()).unwrap(), &group, &mut |_, _| Ok(())).unwrap();
    let row = |expert, matrix| weights.expert(GroupId(0), 0, expert, matrix).unwrap().decode();
    assert_eq!(row(0, ExpertMatrix::Gate), [0., 1., 0., 1., 0., 1., 0., 1.]);
    assert_eq!(row(0, ExpertMatrix::Up), [0., 3., 0., 3., 0., 3., 0., 3.]);
    assert_eq!(row(1, ExpertMatrix::Gate), [8., 12., 8., 12., 8., 12., 8., 12.]);
    assert_eq!(row(1, ExpertMatrix::Up), [12., 18., 12., 18., 12., 18., 12., 18.]);
}

#[test]
fn layers_have_formats_of_their_own_and_a_matrix_has_one() {
    let dir = model(&[
        Stored::raw("w", Dtype::U8, &[2, 64], vec![1; 128]),
        Stored::raw("w.qs", Dtype::F32, &[2], f32s(&[1.0, 2.0])),
        Stored::raw("x", Dtype::U8, &[2, 32], vec![0x99; 64]),
        Stored::raw("x.qs", Dtype::F32, &[2], f32s(&[3.0, 4.0])),
        Stored::raw("y", Dtype::U8, &[2, 32], vec![0x22; 64]),
        Stored::raw("y.qs", Dtype::U8, &[2, 2], vec![128; 4]),
    ]);
    for (name, format, want) in [("w", Format::INT8_ROW, [1., 2.]), ("x", Format::INT4_ROW, [3., 4.]), ("y", Format::MXFP4, [2., 2.])] {
        let loaded = weight(&dir, &[2, 64], View::tensor(name));
        assert_eq!((loaded.format, &loaded.numbers[63..65]), (format, &want[..]), "{name}");
    }
    let joined = View::Concat(vec![View::tensor("w"), View::tensor("x")]);
    let text = try_weight(&dir, &[4, 64], joined).map(|loaded| loaded.rows).unwrap_err().text;
    assert_eq!(text, "w: tensor `x`: is int4-row, the parts before it are int8-row: one matrix has one format");
    for view in [View::tensor("w").flat(), View::tensor("y").flat()] {
        let text = try_weight(&dir, &[128], view).map(|loaded| loaded.rows).unwrap_err().text;
        assert!(text.contains("nothing says how long its rows are"), "{text}");
    }
    // A vector is a row, from which nothing can be cut.
    let vector =
        model(&[Stored::raw("w", Dtype::F8_E4M3, &[40], vec![ONE; 40]), Stored::raw("w_scale_inv", Dtype::F32, &[1], f32s(&[3.0]))]);
    assert_eq!(weight(&vector, &[40], View::tensor("w")).numbers, [3.0; 40]);
    let cut = |view: View, len: u32| try_weight(&vector, &[len], view).map(|loaded| loaded.rows).unwrap_err().text;
    let row = View::Rows { of: Box::new(View::tensor("w")), start: 0, count: 2, step: 1 };
    let twice = View::Concat(vec![View::tensor("w"), View::tensor("w")]);
    for text in [cut(row, 2), cut(twice, 80), cut(View::tensor("w").flat(), 40)] {
        assert!(text.contains("no single numbers"), "{text}");
    }
}
