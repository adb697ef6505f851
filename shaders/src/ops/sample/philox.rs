//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (2011): a pure function from key and counter to four words.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// Four words for a counter under a key.
pub fn words(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let first = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let second = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [(second >> 32) as u32 ^ counter[1] ^ key[0], second as u32, (first >> 32) as u32 ^ counter[3] ^ key[1], first as u32];
    }
    counter
}

/// 64 bits for a position under a seed.
pub fn draw(seed: u64, position: u32) -> u64 {
    let [low, high, ..] = words([seed as u32, (seed >> 32) as u32], [position, 0, 0, 0]);
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::words;

    /// The known answers that the generator's authors publish with it.
    #[test]
    fn the_published_known_answers() {
        let cases = [
            ([0; 2], [0; 4], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 2], [u32::MAX; 4], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0xa409_3822, 0x299f_31d0],
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (key, counter, expected) in cases {
            assert_eq!(words(key, counter), expected);
        }
    }
}
