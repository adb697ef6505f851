//! How many positions a conversation may have.

use coli_base::{Error, Result};

use crate::Choice;

/// The most positions when nobody asks: memory for a model's whole range is not taken without a request.
pub const DEFAULT_MAX: u32 = 4096;

/// Chooses the context length for a model that can have `model_max` positions.
pub fn choose(requested: Option<u32>, model_max: u32) -> Result<Choice<u32>> {
    if model_max == 0 {
        return Err(Error::refused("the model's description allows no positions at all"));
    }
    match requested {
        Some(0) => Err(Error::usage(format!("--ctx 0: a context has at least 1 position; this model's has at most {model_max}"))),
        Some(asked) if asked > model_max => {
            Err(Error::usage(format!("--ctx {asked}: this model's context has at most {model_max} positions")))
        }
        Some(asked) => Ok(Choice::new(asked, format!("asked for by --ctx; the model's most is {model_max}"))),
        None if model_max <= DEFAULT_MAX => Ok(Choice::new(model_max, "the model's most")),
        None => Ok(Choice::new(DEFAULT_MAX, format!("the default; --ctx gives up to {model_max}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_base::Kind;

    #[test]
    fn the_default_is_the_smaller_of_the_models_and_ours() {
        let cases = [(None, 1024, 1024), (None, 4096, 4096), (None, 131_072, 4096), (Some(131_072), 131_072, 131_072), (Some(1), 8, 1)];
        for (requested, model_max, expected) in cases {
            assert_eq!(choose(requested, model_max).unwrap().value, expected);
        }
    }

    #[test]
    fn a_request_over_the_models_most_names_both_numbers() {
        let error = choose(Some(1025), 1024).unwrap_err();
        assert_eq!(error.kind, Kind::Usage);
        assert!(error.text.contains("1025") && error.text.contains("1024"), "{}", error.text);
        assert_eq!(choose(Some(0), 1024).unwrap_err().kind, Kind::Usage);
        assert_eq!(choose(None, 0).unwrap_err().kind, Kind::Refused);
    }
}
