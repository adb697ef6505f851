//! Cases of formats, from `cases.json` beside a decoder: matrices whose numbers were decoded by code that nobody here wrote
//! (`tests/ops/reference/make_packed_formats.py`).

use coli_plugin_api::serde_json::{Value, from_str};

use super::{Format, WeightView};

fn bytes(case: &Value, key: &str) -> Vec<u8> {
    let digits = case[key].as_str().unwrap_or_else(|| panic!("{key} of {}", case["name"])).as_bytes();
    let digit = |digit: u8| (digit as char).to_digit(16).unwrap_or_else(|| panic!("digit in {key} of {}", case["name"])) as u8;
    digits.as_chunks::<2>().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

fn numbers(case: &Value, key: &str) -> Vec<f32> {
    bytes(case, key).as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

fn counts(case: &Value, key: &str) -> Vec<usize> {
    case[key].as_array().unwrap().iter().map(|count| count.as_u64().unwrap() as usize).collect()
}

/// Equal bits; any NaN equals any other.
fn assert_same(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(same, "{what}: number {at} is {got:e}, not {want:e}");
    }
}

/// Decodes every matrix of the file; its formats must be exactly `formats`.
pub(super) fn check(json: &str, formats: &[Format]) {
    let cases: Vec<Value> = from_str(json).unwrap();
    for format in formats {
        assert!(cases.iter().any(|case| case["format"] == format.name()), "no case of {format:?}");
    }
    for case in &cases {
        let format = Format::by_name(case["format"].as_str().unwrap()).unwrap();
        assert!(formats.contains(&format), "case of {format:?}");
        check_decoder(case, format);
        if case.get("row").is_some() {
            let want = Some((bytes(case, "values"), bytes(case, "scales")));
            assert_eq!(format.encode_row(&numbers(case, "row")), want, "{}: encoded", case["name"]);
        }
    }
}

/// A matrix has the rows `at` from the file; the others are zeros.
fn check_decoder(case: &Value, format: Format) {
    let [rows, cols] = counts(case, "shape")[..] else { panic!("shape of {}", case["name"]) };
    let (row_bytes, at, values, want) =
        (format.row_bytes(cols).unwrap(), counts(case, "at"), bytes(case, "values"), numbers(case, "expected"));
    assert_eq!(values.len(), at.len() * row_bytes, "{}", case["name"]);
    let mut matrix = vec![0; rows * row_bytes];
    for (values, row) in values.chunks_exact(row_bytes).zip(&at) {
        matrix[row * row_bytes..][..row_bytes].copy_from_slice(values);
    }
    matrix.extend(bytes(case, "scales"));
    let view = WeightView::new(format, rows, cols, &matrix).unwrap_or_else(|| panic!("bytes of {}", case["name"]));
    for (want, row) in want.chunks_exact(cols).zip(&at) {
        let mut got = vec![9.0; cols];
        view.decode_row(*row, &mut got);
        assert_same(&got, want, &format!("{} row {row}", case["name"]));
    }
}

/// Rows of many magnitudes encode, decode and encode to the same bytes; those with subnormal scales are only encoded.
pub(super) fn check_encoder(format: Format) {
    let mut state = 1u32;
    for exponent in -149..100 {
        for cols in [1, 2, 63, 64, 65, 130] {
            let number = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (f64::from(state) / 2f64.powi(31) - 1.0) as f32 * 2f64.powi(exponent + (state >> 28) as i32) as f32
            };
            let row: Vec<f32> = (0..cols).map(number).collect();
            let (values, scales) = format.encode_row(&row).unwrap();
            let mut decoded = vec![0.0; cols];
            format.decode_row(&values, &scales, &mut decoded);
            if exponent >= -80 {
                assert_eq!(format.encode_row(&decoded), Some((values, scales)), "{format:?}, 2^{exponent}, {row:?}");
            }
        }
    }
    let zeros = format.encode_row(&[0.0, -0.0, 0.0]).unwrap();
    assert!(zeros.1.iter().all(|byte| *byte == 0), "{format:?}: the scale of zeros");
    let mut decoded = [9.0; 3];
    format.decode_row(&zeros.0, &zeros.1, &mut decoded);
    assert_eq!(decoded, [0.0; 3], "{format:?}");
}
