//! `./coli.sh dist [--out DIR]`: writes the release archive of this platform and prints its path.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use coli_test_common::built;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let out = match args.as_slice() {
        [] => built::home().with_file_name("dist"),
        [option, folder] if option == "--out" && !folder.is_empty() => PathBuf::from(folder),
        _ => {
            eprintln!("coli.sh: dist takes --out DIR or nothing");
            return ExitCode::from(2);
        }
    };
    match coli_test_dist::write(&out) {
        Ok(archive) => {
            println!("{}", archive.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("coli.sh: dist: {error:#}");
            ExitCode::FAILURE
        }
    }
}
