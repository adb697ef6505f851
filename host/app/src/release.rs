//! The `coli` binary of a release: no folder of the machine that built it is in it.

fn main() -> std::process::ExitCode {
    coli_app::run(coli_config::Baked::default())
}
