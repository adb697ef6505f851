//! Opens a plugin's library as the host would and prints what became of it: `coli-loader MANIFEST LIBRARY`.

use std::path::PathBuf;

fn main() -> Result<(), &'static str> {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(manifest), Some(library)) = (paths.next(), paths.next()) else { return Err("give a manifest and a library") };
    println!("{}", coli_plugins::check_here(&manifest, &library));
    Ok(())
}
