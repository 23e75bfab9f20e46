//! The tool `replay`: what was a ledger's state then, what happened, why, and is it whole.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = replay::cli::Cli::parse();
    // Strips colours where nobody would see them: no terminal, or NO_COLOR is set.
    let mut out = std::io::BufWriter::new(anstream::AutoStream::auto(std::io::stdout()));
    ExitCode::from(replay::run(&cli, &mut out))
}
