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
    /// Whether the chosen device has fast kernels for the model's formats.
    pub fast_kernels: bool,
}

/// Chooses the precision.
pub fn choose(request: PrecisionRequest, facts: PrecisionFacts) -> Result<Choice<Precision>> {
    match (request, facts.fast_kernels) {
        (PrecisionRequest::Exact, _) => Ok(Choice::new(Precision::Exact, "asked for by --precision exact")),
        (PrecisionRequest::Fast, true) => Ok(Choice::new(Precision::Fast, "asked for by --precision fast")),
        (PrecisionRequest::Auto, true) => Ok(Choice::new(Precision::Fast, "the device has fast kernels for this model")),
        (PrecisionRequest::Auto, false) => Ok(Choice::new(Precision::Exact, "there are no fast kernels for this model here yet")),
        (PrecisionRequest::Fast, false) => Err(Error::unmet(
            "--precision fast: there are no fast kernels for this model here yet; use --precision exact or leave the option out",
        )),
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
    fn fast_needs_kernels_and_auto_takes_what_there_is() {
        let cases = [
            ("auto", false, Ok(Precision::Exact)),
            ("auto", true, Ok(Precision::Fast)),
            ("exact", false, Ok(Precision::Exact)),
            ("exact", true, Ok(Precision::Exact)),
            ("fast", true, Ok(Precision::Fast)),
            ("fast", false, Err(Kind::Unmet)),
        ];
        for (text, fast_kernels, expected) in cases {
            let request: PrecisionRequest = text.parse().unwrap();
            assert_eq!(request.to_string(), text);
            let chosen = choose(request, PrecisionFacts { fast_kernels });
            assert_eq!(chosen.map(|choice| choice.value).map_err(|error| error.kind), expected, "{text} {fast_kernels}");
        }
    }

    #[test]
    fn other_words_are_usage_errors() {
        for text in ["", "Exact", "f32"] {
            assert_eq!(text.parse::<PrecisionRequest>().unwrap_err().kind, Kind::Usage);
        }
    }
}
