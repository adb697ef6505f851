//! One error type for everything that a caller could not foresee: a kind, which decides the exit code, and one line for a person.
//!
//! A mistake of our own is an assertion, not an error.

use std::fmt;

use crate::line::{LINE_CHARS_MAX, one_line};

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
    /// The terminal went away: SIGHUP.
    HungUp = 129,
    /// The person pressed Ctrl-C.
    Interrupted = 130,
    /// The system or another program asks for the end: SIGTERM.
    Terminated = 143,
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
    /// An error of the given kind. Names in it may come from a file, a path or a plugin: control characters become spaces and what is very
    /// long is cut, so that it stays one line.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let fits = text.len() <= LINE_CHARS_MAX && !text.contains(char::is_control);
        Self { kind, text: if fits { text } else { one_line(&text, LINE_CHARS_MAX) } }
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

    /// Reading or opening a file of a model or plugin failed: it is refused, unless the system lacks what it takes.
    pub fn of_file(error: &std::io::Error, text: impl Into<String>) -> Self {
        Self::new(if is_of_system(error) { Kind::Run } else { Kind::Refused }, text)
    }

    /// The same error with words in front.
    #[must_use]
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self::new(self.kind, format!("{context}: {}", self.text))
    }
}

/// Whether an error says something of the system and nothing of the file: no memory, no more open files, a disk that fails.
fn is_of_system(error: &std::io::Error) -> bool {
    // EIO, ENFILE and EMFILE, which have no stable kind.
    let numbers: &[i32] = if cfg!(unix) { &[5, 23, 24] } else { &[] };
    error.kind() == std::io::ErrorKind::OutOfMemory || error.raw_os_error().is_some_and(|number| numbers.contains(&number))
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
        assert_eq!(Error::run("a\n  b\n\u{1b}[2Jc").text, "a b [2Jc");
        assert_eq!(Error::run("x".repeat(1 << 20)).text.chars().count(), LINE_CHARS_MAX + 1);
        assert_eq!(Error::refused("b").within("a"), Error::new(Kind::Refused, "a: b"));
    }

    #[cfg(unix)]
    #[test]
    fn what_the_system_lacks_is_no_refusal() {
        let kind = |number: i32| Error::of_file(&std::io::Error::from_raw_os_error(number), "x").kind;
        // ENOENT, EACCES, ELOOP; EIO, ENOMEM, ENFILE, EMFILE.
        assert_eq!([2, 13, 40].map(kind), [Kind::Refused; 3]);
        assert_eq!([5, 12, 23, 24].map(kind), [Kind::Run; 4]);
        assert_eq!(Error::of_file(&std::io::ErrorKind::UnexpectedEof.into(), "x").kind, Kind::Refused);
    }
}
