//! Consecutive primes: the sizes of the hash tables.
//!
//! The reference (mlx-vlm 0.7.10, `deepseek_v41`) looks, for each head of each n-gram length of each layer, for the smallest prime that is
//! `engram_vocab_size` or more and not taken yet. Together these are the consecutive primes from `engram_vocab_size` on, in order.
//!
//! A number is tested by the strong test of Miller and Rabin. With the bases 2, 3, 5 and 7 it is exact below 3215031751 (Jaeschke 1993,
//! "On strong pseudoprimes to several bases").

/// The most primes and the highest start for which the test is exact and the search short.
pub(crate) const MOST: usize = 1 << 16;
pub(crate) const HIGHEST_START: u64 = 1 << 31;

const BASES: [u64; 4] = [2, 3, 5, 7];

/// The first `count` primes that are `start` or more; `count` is at most [`MOST`], `start` at most [`HIGHEST_START`].
pub(crate) fn from(start: u64, count: usize) -> Vec<u64> {
    (start..).filter(|number| is_prime(*number)).take(count).collect()
}

fn is_prime(number: u64) -> bool {
    if number < 2 {
        return false;
    }
    match BASES.iter().find(|base| number.is_multiple_of(**base)) {
        Some(base) => number == *base,
        None => BASES.iter().all(|base| passes(number, *base)),
    }
}

/// With `number - 1 = odd * 2^twos`: `base^odd` is 1, or one of its first `twos` squares is -1.
fn passes(number: u64, base: u64) -> bool {
    let twos = (number - 1).trailing_zeros();
    let mut power = power(base, (number - 1) >> twos, number);
    if power == 1 {
        return true;
    }
    for _ in 0..twos {
        if power == number - 1 {
            return true;
        }
        power = product(power, power, number);
    }
    false
}

fn power(mut base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, base, modulus);
        }
        base = product(base, base, modulus);
        exponent >>= 1;
    }
    result
}

fn product(a: u64, b: u64, modulus: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_agree_with_trial_division() {
        let divided = |number: u64| number > 1 && (2..).take_while(|by| by * by <= number).all(|by| !number.is_multiple_of(by));
        for number in 0..20_000 {
            assert_eq!(is_prime(number), divided(number), "{number}");
        }
    }

    /// 2047, 1373653, 25326001 and 3215031751 are the first to deceive 2, 2 and 3, 2 to 5, 2 to 7; then Carmichael numbers, and a square.
    #[test]
    fn pseudoprimes_are_told() {
        for number in [2047, 1373653, 25326001, 561, 1105, 6601, 101101, 46337 * 46337] {
            assert!(!is_prime(number), "{number}");
        }
        assert!(is_prime(3215031751), "the limit is where it is said to be");
        assert!(is_prime(2147483647));
    }

    /// From mlx-vlm 0.7.10, `EngramLayout.from_config(config).primes` with the fixture's configuration.
    #[test]
    fn the_fixtures_primes() {
        assert_eq!(from(20, 16), [23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89]);
    }

    /// `engram_num_embeddings` of the published configuration: 2 layers, lengths 2 to 4, 8 heads.
    #[test]
    fn the_releases_tables() {
        let sums: Vec<u64> = from(16_000_000, 48).chunks(24).map(|layer| layer.iter().sum()).collect();
        assert_eq!(sums, [384_006_168, 384_016_682]);
    }

    #[test]
    fn the_search_stays_where_the_test_is_exact() {
        let primes = from(HIGHEST_START, MOST);
        assert_eq!(primes.len(), MOST);
        assert!(primes.last().is_some_and(|last| *last < 3_215_031_751));
    }
}
