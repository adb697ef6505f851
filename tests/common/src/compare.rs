//! How far numbers are from a reference.

/// The largest difference as a share of the reference's largest magnitude. Not a number or another length is infinitely far.
pub fn relative_error(have: &[f32], want: &[f32]) -> f32 {
    if have.len() != want.len() {
        return f32::INFINITY;
    }
    let largest = want.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
    let mut error = 0.0f32;
    for (have, want) in have.iter().zip(want) {
        let difference = (have - want).abs();
        if difference.is_nan() {
            return f32::INFINITY;
        }
        error = error.max(difference);
    }
    if largest > 0.0 { error / largest } else { error }
}

/// Numbers as bits, so that equal means equal.
pub fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// The index of the largest number, the lowest among equals.
pub fn argmax(numbers: &[f32]) -> usize {
    numbers.iter().enumerate().fold(0, |best, (index, number)| if *number > numbers[best] { index } else { best })
}

#[cfg(test)]
mod tests {
    use super::relative_error;

    #[test]
    fn errors_are_shares_of_the_largest_and_nan_never_passes() {
        assert_eq!(relative_error(&[1.0, 4.0], &[1.0, 5.0]), 0.2);
        assert_eq!(relative_error(&[0.5], &[0.0]), 0.5);
        assert_eq!(relative_error(&[f32::NAN, 1.0], &[0.0, 1.0]), f32::INFINITY);
        assert_eq!(relative_error(&[1.0], &[1.0, 2.0]), f32::INFINITY);
    }
}
