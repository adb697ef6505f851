//! How quantities are written for people.

use std::fmt;

/// A number of bytes, printed in binary units with one decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        // 1023.95 would print as 1024.0 of the smaller unit.
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        match unit {
            0 => write!(f, "{} B", self.0),
            _ => write!(f, "{value:.1} {}", UNITS[unit]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn bytes_are_written_in_the_largest_unit_that_fits() {
        let cases =
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (26_316_264, "25.1 MiB"), (1 << 30, "1.0 GiB"), (1_048_575, "1.0 MiB")];
        for (bytes, text) in cases {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
