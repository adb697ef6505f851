//! The `coli` binary.

fn main() -> std::process::ExitCode {
    coli_app::run()
}
