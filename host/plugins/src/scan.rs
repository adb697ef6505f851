//! Opening a library in a child process first.
//!
//! The system's loader trusts what it maps, and a library's initialisers run before anything can be asked of it: a file that is half
//! zeros, or an initialiser that aborts, ends the process that opens it. So a [`Checker`] has the program itself, started with a hidden
//! command that calls [`check_here`], open the library; a child that ends in any way but with an answer is a refusal. Crashes are
//! remembered, and so is that a library opens, so that a run pays for the child once. A library that opens is also asked what any model
//! would have it asked, of a model that has nothing: code that is broken shows where it is run.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use coli_base::{Error, Kind};
use coli_plugin_api::describe::{Container, DescribeRequest};
use serde::{Deserialize, Serialize};

use crate::load::Library;
use crate::manifest::Manifest;
use crate::model::PluginModel;
use crate::search::Found;
use crate::verdicts::{Identity, Verdict, Verdicts};

/// The hidden command of the program, which is followed by the paths of a manifest and of a library.
pub const CHECK_COMMAND: &str = "__check-plugin";

/// Opening takes milliseconds; after this long a library hangs.
const LIMIT: Duration = Duration::from_secs(10);
const BLINK: Duration = Duration::from_micros(500);
/// An answer is one line; a library's initialisers may have printed before it.
const OUTPUT_MAX: u64 = 1 << 20;
/// Signals that tell of the person or the system, and not of the library: hang-up, interrupt, quit, kill, broken pipe, terminate.
const FROM_OUTSIDE: [i32; 6] = [1, 2, 3, 9, 13, 15];

/// Which remembered verdicts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// All: a library that opened before is not tried again.
    All,
    /// Those on libraries that crashed.
    Crashes,
    /// None.
    Nothing,
}

/// Opens libraries in a child process.
#[derive(Debug, Clone)]
pub struct Checker {
    program: PathBuf,
    verdicts: Verdicts,
    recall: Recall,
}

/// What the child prints.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    refused: Option<String>,
}

/// How a child's work ended.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// With a verdict: the library can be opened.
    Answered(Result<(), String>),
    /// In a way that the library is to blame for.
    Crashed(String),
    /// In a way that says nothing of the library.
    Undecided(String),
    /// Not at all: the system cannot start the child or wait for it.
    Unasked(String),
}

impl Checker {
    /// A checker that starts `program` and remembers in the folder `cache`, which need not exist; without one it remembers nothing.
    pub fn new(program: PathBuf, cache: Option<PathBuf>, recall: Recall) -> Self {
        Self { program, verdicts: Verdicts(cache), recall }
    }

    /// Whether the library may be opened in this process; the error is why it is refused.
    pub(crate) fn check(&self, found: &Found) -> coli_base::Result<()> {
        let in_library = |why: String| Error::refused(format!("library {} {why}", found.library.display()));
        let identity = Identity::of(&found.library);
        let remembered = identity.as_ref().filter(|_| self.recall != Recall::Nothing).and_then(|library| self.verdicts.recall(library));
        match remembered {
            Some(Verdict::Crashes(why)) => return Err(in_library(format!("{why}, and is not tried again; `coli plugins --recheck` does"))),
            Some(Verdict::Opens) if self.recall == Recall::All => return Ok(()),
            _ => {}
        }
        let (verdict, reply) = match self.ask(found) {
            Outcome::Answered(answer) => (Some(Verdict::Opens), answer.map_err(Error::refused)),
            Outcome::Crashed(why) => (Some(Verdict::Crashes(why.clone())), Err(in_library(why))),
            Outcome::Undecided(why) => (None, Err(in_library(why))),
            Outcome::Unasked(why) => (None, Err(Error { kind: Kind::Run, ..in_library(why) })),
        };
        if let (Some(library), Some(verdict)) = (&identity, verdict) {
            self.verdicts.keep(library, verdict);
        }
        reply
    }

    fn ask(&self, found: &Found) -> Outcome {
        let mut command = Command::new(&self.program);
        command.arg(CHECK_COMMAND).arg(&found.manifest_path).arg(&found.library);
        // What dies may say so; one line of ours is enough.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => conclude(child, LIMIT),
            Err(error) => Outcome::Unasked(format!("cannot be checked: {} does not start: {error}", self.program.display())),
        }
    }
}

/// Waits for the child and takes its answer.
fn conclude(mut child: Child, limit: Duration) -> Outcome {
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < limit => std::thread::sleep(BLINK),
            late_or_lost => {
                // Fails only where it has just ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                return match late_or_lost {
                    Err(error) => Outcome::Unasked(format!("cannot be checked: {error}")),
                    Ok(_) => Outcome::Crashed(format!("did not finish loading within {} s", limit.as_secs_f32())),
                };
            }
        }
    };
    let mut output = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        // What cannot be read is no answer.
        let _ = pipe.take(OUTPUT_MAX).read_to_end(&mut output);
    }
    let line = output.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    judge(status, serde_json::from_slice(line).ok())
}

fn judge(status: ExitStatus, answer: Option<Answer>) -> Outcome {
    match (status.code(), answer) {
        (Some(0), Some(answer)) => Outcome::Answered(answer.refused.map_or(Ok(()), Err)),
        (Some(code), _) => Outcome::Crashed(format!("ended the process while being loaded (exit code {code})")),
        (None, _) => match signal(status) {
            Some(signal) if FROM_OUTSIDE.contains(&signal) => {
                Outcome::Undecided(format!("was not checked to the end: the check was stopped (signal {signal})"))
            }
            Some(signal) => Outcome::Crashed(format!("crashed while being loaded (signal {signal})")),
            None => Outcome::Crashed("crashed while being loaded".into()),
        },
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// The child's part: opens the library in this process and gives the line to print.
pub fn check_here(manifest: &Path, library: &Path) -> String {
    let opened = Manifest::try_read(manifest).and_then(|read| {
        let (manifest_path, library, origin) = (manifest.into(), library.into(), String::new());
        let found = Found { manifest: read, manifest_path, library, origin };
        Library::try_load(&found).map(|library| exercise(&library, &found.manifest))
    });
    // Text alone always has a JSON form.
    serde_json::to_string(&Answer { refused: opened.err() }).unwrap_or_default()
}

/// Calls what needs no weights. The replies do not matter, and most are errors: whoever opens a real model hears of its own. What matters
/// is that the process is still there.
fn exercise(library: &Library, manifest: &Manifest) {
    let Ok(model) = PluginModel::new(library) else { return };
    let config = serde_json::json!({ "model_type": manifest.model_types.first() });
    // Dropped, not looked at: see above.
    let _ = model.describe(&DescribeRequest { container: Container::Hf, config, tensors: vec![], tokenizer: None });
    manifest.own_ops.iter().for_each(|op| drop(model.own_cases(op)));
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// How a child that runs this script ends.
    fn outcome(script: &str, limit: Duration) -> Outcome {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        conclude(command.spawn().unwrap(), limit)
    }

    #[test]
    fn every_end_of_a_child_is_told_apart() {
        let crashed = |why: &str| Outcome::Crashed(why.into());
        let cases = [
            (r#"echo '{"refused":null}'"#, Outcome::Answered(Ok(()))),
            (r#"printf 'noise\n{"refused":"why"}'"#, Outcome::Answered(Err("why".into()))),
            ("true", crashed("ended the process while being loaded (exit code 0)")),
            (r#"echo '{"refused":null}'; exit 7"#, crashed("ended the process while being loaded (exit code 7)")),
            (r#"echo '{"refused":null}'; kill -SEGV $$"#, crashed("crashed while being loaded (signal 11)")),
            ("kill -ABRT $$", crashed("crashed while being loaded (signal 6)")),
        ];
        for (script, expected) in cases {
            assert_eq!(outcome(script, LIMIT), expected, "{script}");
        }
        for name in ["HUP", "INT", "KILL", "TERM"] {
            let script = format!("kill -{name} $$");
            // What started the tests may have had a signal ignored, as nohup has; then no child can end by it.
            let status = Command::new("sh").args(["-c", &script]).status().unwrap();
            assert!(!status.success() || ["HUP", "INT"].contains(&name), "{name} is ignored");
            assert!(status.success() || matches!(outcome(&script, LIMIT), Outcome::Undecided(_)), "{name}");
        }
    }

    #[test]
    fn a_child_that_does_not_end_is_ended() {
        let limit = Duration::from_millis(50);
        assert_eq!(outcome("exec sleep 600", limit), Outcome::Crashed("did not finish loading within 0.05 s".into()));
        // More than a pipe holds, and nobody reads it before the end.
        assert_eq!(outcome("exec yes", limit), Outcome::Crashed("did not finish loading within 0.05 s".into()));
    }
}
