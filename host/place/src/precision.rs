//! Which arithmetic the ops use.

use std::fmt;
use std::str::FromStr;

use coli_base::{Error, Result};

use crate::Choice;

/// What `--precision` asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrecisionRequest {
    /// Fast where it can be had, else exact.
    #[default]
    Auto,
    /// f32 activations and one order of reduction.
    Exact,
    /// Rounded activations, within stated bounds.
    Fast,
}

/// The arithmetic that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// f32 activations and one order of reduction.
    Exact,
    /// Rounded activations, within stated bounds.
    Fast,
}

/// What is known when the precision is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrecisionFacts {
    /// Whether some of the model's weights are small integers with scales, for which fast kernels gain most.
    pub quantized: bool,
}

/// Chooses the precision. A model whose weights are floats keeps exact arithmetic unless fast is asked for.
pub fn choose(request: PrecisionRequest, facts: PrecisionFacts) -> Choice<Precision> {
    match (request, facts.quantized) {
        (PrecisionRequest::Exact, _) => Choice::new(Precision::Exact, "asked for by --precision exact"),
        (PrecisionRequest::Fast, _) => Choice::new(Precision::Fast, "asked for by --precision fast"),
        (PrecisionRequest::Auto, true) => Choice::new(Precision::Fast, "the model's weights are quantized"),
        (PrecisionRequest::Auto, false) => Choice::new(Precision::Exact, "the model's weights are not quantized"),
    }
}

impl FromStr for PrecisionRequest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "exact" => Ok(Self::Exact),
            "fast" => Ok(Self::Fast),
            _ => Err(Error::usage(format!("--precision: `{}` is not one of auto, exact, fast", text.escape_debug()))),
        }
    }
}

impl fmt::Display for PrecisionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Exact => "exact",
            Self::Fast => "fast",
        })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Fast => "fast",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_base::Kind;

    #[test]
    fn auto_is_fast_where_weights_are_quantized() {
        let cases = [
            ("auto", false, Precision::Exact),
            ("auto", true, Precision::Fast),
            ("exact", true, Precision::Exact),
            ("fast", false, Precision::Fast),
        ];
        for (text, quantized, expected) in cases {
            let request: PrecisionRequest = text.parse().unwrap();
            assert_eq!(request.to_string(), text);
            assert_eq!(choose(request, PrecisionFacts { quantized }).value, expected, "{text} {quantized}");
        }
    }

    #[test]
    fn other_words_are_usage_errors() {
        for text in ["", "Exact", "f32"] {
            assert_eq!(text.parse::<PrecisionRequest>().unwrap_err().kind, Kind::Usage);
        }
    }
}
