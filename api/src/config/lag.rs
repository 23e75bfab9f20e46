//! How far what follows the ledger may lag.

use clap::Args;

use crate::lag::{Bound, Bounds};

/// How long a view may lag unless told otherwise, in seconds: searches are refused long before.
const VIEW_SECONDS: u64 = 300;

/// The options on the command line.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
pub struct LagArgs {
    /// /readyz answers 503 when a view lacks more events than this [default: no bound]
    #[arg(long, value_name = "EVENTS", env = "ALLOCD_MAX_LAG")]
    pub max_lag: Option<u64>,
    /// ... or lags longer than this [default: 300]
    #[arg(long, value_name = "SECONDS", env = "ALLOCD_MAX_LAG_SECONDS")]
    pub max_lag_seconds: Option<u64>,
    /// /readyz answers 503 when NATS lacks more events than this [default: no bound, since
    /// commands do not need NATS]
    #[arg(long, value_name = "EVENTS", env = "ALLOCD_MAX_PUBLISH_LAG")]
    pub max_publish_lag: Option<u64>,
    /// ... or lags longer than this [default: no bound]
    #[arg(long, value_name = "SECONDS", env = "ALLOCD_MAX_PUBLISH_LAG_SECONDS")]
    pub max_publish_lag_seconds: Option<u64>,
}

impl LagArgs {
    /// These options, and those of the file where there is none.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            max_lag: self.max_lag.or(file.max_lag),
            max_lag_seconds: self.max_lag_seconds.or(file.max_lag_seconds),
            max_publish_lag: self.max_publish_lag.or(file.max_publish_lag),
            max_publish_lag_seconds: self.max_publish_lag_seconds.or(file.max_publish_lag_seconds),
        }
    }

    /// What they come to.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        let seconds = Some(self.max_lag_seconds.unwrap_or(VIEW_SECONDS));
        Bounds {
            views: Bound { events: self.max_lag, seconds },
            published: Bound {
                events: self.max_publish_lag,
                seconds: self.max_publish_lag_seconds,
            },
        }
    }
}
