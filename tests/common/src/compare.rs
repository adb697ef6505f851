//! How far numbers are from a reference.

pub use coli_chain::case::relative_error;

/// Numbers as bits, so that equal means equal.
pub fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// The index of the largest number, the lowest among equals.
pub fn argmax(numbers: &[f32]) -> usize {
    numbers.iter().enumerate().fold(0, |best, (index, number)| if *number > numbers[best] { index } else { best })
}
