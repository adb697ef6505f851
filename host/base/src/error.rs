//! One error type for everything that a caller could not foresee: a kind, which decides the exit code, and one line for a person.
//!
//! A mistake of our own is an assertion, not an error.

use std::fmt;

/// Who has to act, and so the program's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something failed while running.
    Run = 1,
    /// The command line or a setting is wrong.
    Usage = 2,
    /// A model or plugin is refused.
    Refused = 3,
    /// An explicit request cannot be met.
    Unmet = 4,
    /// The person pressed Ctrl-C.
    Interrupted = 130,
}

/// A foreseeable failure. Its text is one line that says what is wrong and, where there is one, the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Who has to act.
    pub kind: Kind,
    /// The line.
    pub text: String,
}

/// A result with our error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of the given kind. Line breaks become spaces, so that it stays one line.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let text = if text.contains('\n') { text.split_whitespace().collect::<Vec<_>>().join(" ") } else { text };
        Self { kind, text }
    }

    /// Something failed while running.
    pub fn run(text: impl Into<String>) -> Self {
        Self::new(Kind::Run, text)
    }

    /// The command line or a setting is wrong.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(Kind::Usage, text)
    }

    /// A model or plugin is refused.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::new(Kind::Refused, text)
    }

    /// An explicit request cannot be met.
    pub fn unmet(text: impl Into<String>) -> Self {
        Self::new(Kind::Unmet, text)
    }

    /// The same error with words in front.
    #[must_use]
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self::new(self.kind, format!("{context}: {}", self.text))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(Error::run("a\n  b\nc").text, "a b c");
        assert_eq!(Error::refused("b").within("a"), Error::new(Kind::Refused, "a: b"));
    }
}
