//! The types of tensors that ggml has given numbers to, as far as they are stored in files.

use std::borrow::Cow;

/// What is known of a type.
pub(crate) struct Type {
    number: u32,
    name: &'static str,
    /// Numbers of a block.
    pub(crate) block: u64,
    /// Bytes of a block.
    pub(crate) bytes: u64,
}

const fn entry(number: u32, name: &'static str, block: u64, bytes: u64) -> Type {
    Type { number, name, block, bytes }
}

/// `ggml.h` and `ggml-common.h`. The numbers that are left out were given up by ggml, or are of types that only live in memory.
const TYPES: [Type; 33] = [
    entry(0, "f32", 1, 4),
    entry(1, "f16", 1, 2),
    entry(2, "q4_0", 32, 18),
    entry(3, "q4_1", 32, 20),
    entry(6, "q5_0", 32, 22),
    entry(7, "q5_1", 32, 24),
    entry(8, "q8_0", 32, 34),
    entry(10, "q2_k", 256, 84),
    entry(11, "q3_k", 256, 110),
    entry(12, "q4_k", 256, 144),
    entry(13, "q5_k", 256, 176),
    entry(14, "q6_k", 256, 210),
    entry(16, "iq2_xxs", 256, 66),
    entry(17, "iq2_xs", 256, 74),
    entry(18, "iq3_xxs", 256, 98),
    entry(19, "iq1_s", 256, 50),
    entry(20, "iq4_nl", 32, 18),
    entry(21, "iq3_s", 256, 110),
    entry(22, "iq2_s", 256, 82),
    entry(23, "iq4_xs", 256, 136),
    entry(24, "i8", 1, 1),
    entry(25, "i16", 1, 2),
    entry(26, "i32", 1, 4),
    entry(27, "i64", 1, 8),
    entry(28, "f64", 1, 8),
    entry(29, "iq1_m", 256, 56),
    entry(30, "bf16", 1, 2),
    entry(34, "tq1_0", 256, 54),
    entry(35, "tq2_0", 256, 66),
    entry(39, "mxfp4", 32, 17),
    entry(40, "nvfp4", 64, 36),
    entry(41, "q1_0", 128, 18),
    entry(42, "q2_0", 64, 18),
];

/// The type of a number, `None` for one that is not known.
pub(crate) fn of_number(number: u32) -> Option<&'static Type> {
    TYPES.iter().find(|known| known.number == number)
}

/// Its name, or one made of its number.
pub(crate) fn name(number: u32) -> Cow<'static, str> {
    of_number(number).map_or_else(|| format!("ggml-type-{number}").into(), |known| known.name.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_shaders::formats::Format;

    #[test]
    fn formats_and_types_agree() {
        let mut read = 0;
        for known in &TYPES {
            let Some(format) = Format::of_ggml(known.number) else { continue };
            read += 1;
            assert_eq!(format.row_bytes(known.block as usize), Some(known.bytes as usize), "{format:?}");
            assert!(known.block == 1 || format.row_bytes(known.block as usize - 1).is_none(), "{format:?}");
        }
        let with_number = Format::ALL.iter().filter(|format| format.ggml_id().is_some()).count();
        assert_eq!(read, with_number);
    }
}
