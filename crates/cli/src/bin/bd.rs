//! The `bd` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    gt_cli::main(std::env::args_os())
}
