//! What K formats share: where the codes and scales of a group stand in a block of 256.

/// Scale and minimum of group `group` of 8, six bits each, in twelve bytes:
///
/// ```text
/// byte 0..3     S[g+4] bits 5..4, S[g] (6 bits)       g = byte
/// byte 4..7     M[g+4] bits 5..4, M[g] (6 bits)       g = byte - 4
/// byte 8..11    M[g+4] bits 3..0, S[g+4] bits 3..0    g = byte - 8
/// ```
pub(super) fn scale_min(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, min) = match group {
        0..4 => (packed[group] & 63, packed[group + 4] & 63),
        _ => {
            let low = packed[group + 4];
            (low & 15 | packed[group - 4] >> 2 & 0x30, low >> 4 | packed[group] >> 2 & 0x30)
        }
    };
    (f32::from(scale), f32::from(min))
}

/// Two-bit codes of the 16 columns of `group`, each with a number made of its place among 32 bytes and the code.
///
/// The lowest bits of 32 bytes are 32 columns, the next bits the next 32; after 128 columns come the next 32 bytes.
pub(super) fn pairs(bytes: &[u8], group: usize, out: &mut [f32], number: impl Fn(usize, u8) -> f32) {
    let (first, shift) = (group % 2 * 16, group % 8 / 2 * 2);
    let bytes = &bytes[group / 8 * 32 + first..][..16];
    out.iter_mut().zip(bytes).enumerate().for_each(|(at, (out, byte))| *out = number(first + at, byte >> shift & 3));
}
