//! What a client gets while the log cannot be read.

use std::error::Error;

use ledger::log::LogError;

use crate::http::failure::Failure;

/// 503 while the log is being opened again, which is over within moments; else 500, with the cause
/// in the server's log.
pub fn unreadable(error: &(dyn Error + 'static)) -> Failure {
    let mut causes =
        std::iter::successors(Some(error), |&error: &&(dyn Error + 'static)| error.source());
    if causes.any(|cause| matches!(cause.downcast_ref(), Some(LogError::Reopening))) {
        return Failure::busy("The log is being opened again.");
    }
    tracing::error!(%error, "the log cannot be read");
    Failure::internal("The log cannot be read.")
}
