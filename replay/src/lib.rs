//! Looks into a ledger without changing it: [`at`] any moment of its past, the [`history`] of one
//! thing, why something went as it did ([`explain`]), and whether the whole is sound ([`verify`]).
//!
//! It reads the directory of a running server or of a stopped one. Whatever lies beyond the
//! position that the server has acknowledged is shown as not yet durable.

pub mod at;
pub mod cli;
mod entry;
pub mod error;
pub mod explain;
pub mod history;
mod names;
mod open;
mod progress;
mod roles;
mod shown;
mod table;
mod units;
pub mod verify;
mod words;

use cli::{Cli, Verb};
use error::Error;
use std::io::{self, Write};

/// All is well.
pub const GOOD: u8 = 0;
/// `verify` found something wrong, or another verb met damaged or missing records.
pub const FINDING: u8 = 1;
/// The command line makes no sense, or there is no ledger to open.
pub const CANNOT: u8 = 2;

/// Runs one verb and returns the exit status. Results go to `out`; errors and progress go to the
/// standard error.
pub fn run(cli: &Cli, out: &mut dyn Write) -> u8 {
    let result = dispatch(cli, out).and_then(|status| {
        out.flush()?;
        Ok(status)
    });
    match result {
        Ok(status) => status,
        // The reader of a pipe has seen enough (`replay history ... | head`).
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => GOOD,
        Err(error) => {
            let _ = out.flush();
            anstream::eprintln!("replay: {error}");
            error.status()
        }
    }
}

fn dispatch(cli: &Cli, out: &mut dyn Write) -> Result<u8, Error> {
    match &cli.verb {
        Verb::At(args) => at::run(args, out),
        Verb::History(args) => history::run(args, out),
        Verb::Explain(args) => explain::run(args, out),
        Verb::Verify(args) => verify::run(args, out),
    }
}
