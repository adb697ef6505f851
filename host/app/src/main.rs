//! The `coli` binary of a build folder: it also looks in the source tree that it was built from.

fn main() -> std::process::ExitCode {
    coli_app::run(coli_config::baked!())
}
