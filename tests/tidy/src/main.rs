//! Writes docs/generated/.

use std::process::ExitCode;

use coli_test_tidy::{Tree, generate};

fn main() -> ExitCode {
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> std::io::Result<()> {
    let root = coli_test_common::built::root();
    let tree = Tree::read(&root)?;
    std::fs::create_dir_all(root.join(generate::FOLDER))?;
    for (path, text) in generate::pages(&tree) {
        if tree.text(&path) != text {
            std::fs::write(root.join(&path), text)?;
            println!("wrote {path}");
        }
    }
    Ok(())
}
