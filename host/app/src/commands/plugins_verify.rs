//! `coli plugins verify`: whether the files of an unpacked release are those that were released.

use std::io::Write as _;
use std::path::Path;

use coli_base::Error;
use coli_base::line::{LINE_CHARS_MAX, one_line};
use coli_config::Environment;
use serde::Serialize;

use crate::cli::VerifyArgs;
use crate::sums::{self, Findings};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    folder: String,
    ok: bool,
    #[serde(flatten)]
    findings: &'a Findings,
}

pub(super) fn run(args: &VerifyArgs, environment: &Environment) -> anyhow::Result<()> {
    let folder = environment.home_folder()?;
    let Some(findings) = sums::compare(&folder)? else { return Err(nothing_to_verify(&folder).into()) };
    if args.json {
        let report = Report { folder: folder.display().to_string(), ok: findings.is_clean(), findings: &findings };
        let json = escaped(&serde_json::to_string_pretty(&report)?);
        super::to_stdout(|out| writeln!(out, "{json}"))?;
    } else {
        super::to_stdout(|out| print(&findings, out))?;
    }
    if findings.is_clean() { Ok(()) } else { Err(refusal(&folder, &findings).into()) }
}

fn print(findings: &Findings, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let Findings { missing, altered, unreadable, extra, .. } = findings;
    for (state, paths) in [("missing", missing), ("altered", altered), ("unreadable", unreadable), ("extra", extra)] {
        for path in paths {
            writeln!(out, "{state:<8} {}", one_line(&path.escape_debug().to_string(), LINE_CHARS_MAX))?;
        }
    }
    if findings.is_clean() { writeln!(out, "all {} files are as released", findings.listed) } else { Ok(()) }
}

/// JSON in which no character of a name acts on a terminal, or turns the direction of writing.
fn escaped(json: &str) -> String {
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let acts = |c: char| turns(c) || (c.is_control() && c != '\n');
    json.chars().map(|c| if acts(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() }).collect()
}

fn nothing_to_verify(folder: &Path) -> Error {
    Error::unmet(format!(
        "there is nothing to verify: {} has no {}, which an unpacked release has beside the program; ./coli.sh dist makes a release",
        folder.display(),
        sums::NAME
    ))
}

fn refusal(folder: &Path, findings: &Findings) -> Error {
    let Findings { listed, missing, altered, unreadable, extra } = findings;
    Error::refused(format!(
        "{} is not as released: of {listed} files {} are missing and {} altered, {} cannot be read, and models/ has {} more; unpack the \
         archive again, and keep plugins of your own in another folder",
        folder.display(),
        missing.len(),
        altered.len(),
        unreadable.len(),
        extra.len()
    ))
}
