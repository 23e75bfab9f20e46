//! The program `allocd`.

use std::process::ExitCode;

use allocd::config::{Cli, Config};
use allocd::{logging, serve};
use clap::Parser;
use mimalloc::MiMalloc;

/// A request is many small allocations, made on one thread and often let go of on another: with
/// the C library's allocator these were an eighth of the time of a claim.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("allocd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), serve::Failed> {
    let config = Config::resolve(Cli::parse().into_serve())?;
    logging::start(config.log_format, &config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve::serve(config))
}
