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
        let json = serde_json::to_string_pretty(&report)?;
        super::to_stdout(|out| writeln!(out, "{json}"))?;
    } else {
        super::to_stdout(|out| print(&findings, out))?;
    }
    if findings.is_clean() { Ok(()) } else { Err(refusal(&folder, &findings).into()) }
}

fn print(findings: &Findings, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let states = [("missing", &findings.missing), ("altered", &findings.altered), ("extra", &findings.extra)];
    for (state, paths) in states {
        for path in paths {
            writeln!(out, "{state:<8} {}", one_line(path, LINE_CHARS_MAX))?;
        }
    }
    if findings.is_clean() { writeln!(out, "all {} files are as released", findings.listed) } else { Ok(()) }
}

fn nothing_to_verify(folder: &Path) -> Error {
    Error::unmet(format!(
        "there is nothing to verify: {} has no {}, which an unpacked release has beside the program; ./coli.sh dist makes a release",
        folder.display(),
        sums::NAME
    ))
}

fn refusal(folder: &Path, findings: &Findings) -> Error {
    let Findings { listed, missing, altered, extra } = findings;
    Error::refused(format!(
        "{} is not as released: of {listed} files {} are missing and {} altered, and models/ has {} more; unpack the archive again, and \
         keep plugins of your own in another folder",
        folder.display(),
        missing.len(),
        altered.len(),
        extra.len()
    ))
}
