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

/// Threads on which long reads are made, or which take over from one that makes one. Their turns are
/// fewer (searches, reads, views of the past, streams, metrics), so that one is always free; without
/// a bound a flood of short ones leaves hundreds of threads, each with memory of its own.
const LONG_READERS: usize = 24;

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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(LONG_READERS)
        .enable_all()
        .build()?;
    runtime.block_on(serve::serve(config))
}
