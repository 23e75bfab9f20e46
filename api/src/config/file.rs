//! The TOML file: the same settings under the same names as on the command line.

use std::path::{Path, PathBuf};

use projector::connection::Secret;
use serde::Deserialize;

use super::candidates::{CandidatesArgs, GenerationStrategy};
use super::lag::LagArgs;
use super::nats::NatsArgs;
use super::{ConfigError, SameHostMoves};
use crate::logging::LogFormat;

/// What a file may say. An unknown name is an error: it is more likely misspelt than meant for
/// another version.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct File {
    pub listen: Option<String>,
    pub data_dir: Option<PathBuf>,
    pub nats: Option<String>,
    pub nats_service: Option<bool>,
    pub nats_buckets: Option<bool>,
    pub nats_inbox: Option<String>,
    pub nats_ca: Option<PathBuf>,
    pub nats_cert: Option<PathBuf>,
    pub nats_key: Option<PathBuf>,
    pub nats_user: Option<String>,
    pub nats_password: Option<Secret>,
    pub nats_token: Option<Secret>,
    pub nats_nkey: Option<PathBuf>,
    pub nats_creds: Option<PathBuf>,
    pub max_lag: Option<u64>,
    pub max_lag_seconds: Option<u64>,
    pub max_publish_lag: Option<u64>,
    pub max_publish_lag_seconds: Option<u64>,
    pub auth_strategy: Option<String>,
    pub policy_file: Option<PathBuf>,
    pub enforce_new_defaults: Option<bool>,
    pub cors_allowed_origin: Option<String>,
    pub cors_allow_headers: Option<String>,
    pub max_connections: Option<usize>,
    pub min_free_bytes: Option<u64>,
    pub open_move_bound: Option<u32>,
    pub same_host_moves: Option<SameHostMoves>,
    #[serde(alias = "max_allocation_candidates")]
    pub max_allocation_candidates: Option<i64>,
    #[serde(alias = "allocation_candidates_generation_strategy")]
    pub allocation_candidates_generation_strategy: Option<GenerationStrategy>,
    #[serde(alias = "randomize_allocation_candidates")]
    pub randomize_allocation_candidates: Option<bool>,
    pub log: Option<String>,
    pub log_format: Option<LogFormat>,
}

impl File {
    /// What it says of lags.
    pub fn lag(&self) -> LagArgs {
        LagArgs {
            max_lag: self.max_lag,
            max_lag_seconds: self.max_lag_seconds,
            max_publish_lag: self.max_publish_lag,
            max_publish_lag_seconds: self.max_publish_lag_seconds,
        }
    }

    /// What it says of searches for candidates. Placement's own spelling of their names will do.
    pub fn candidates(&self) -> CandidatesArgs {
        CandidatesArgs {
            max_allocation_candidates: self.max_allocation_candidates,
            allocation_candidates_generation_strategy: self
                .allocation_candidates_generation_strategy,
            randomize_allocation_candidates: self.randomize_allocation_candidates,
        }
    }

    /// What it says of NATS.
    pub fn nats(&mut self) -> NatsArgs {
        NatsArgs {
            nats: self.nats.take(),
            nats_service: self.nats_service.take(),
            nats_buckets: self.nats_buckets.take(),
            nats_inbox: self.nats_inbox.take(),
            nats_ca: self.nats_ca.take(),
            nats_cert: self.nats_cert.take(),
            nats_key: self.nats_key.take(),
            nats_user: self.nats_user.take(),
            nats_password: self.nats_password.take(),
            nats_token: self.nats_token.take(),
            nats_nkey: self.nats_nkey.take(),
            nats_creds: self.nats_creds.take(),
        }
    }
}

/// Reads a file.
pub fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        ConfigError::File {
            path: path.to_owned(),
            line: before.map_or(1, |before| before.matches('\n').count() + 1),
            what: error.message().to_owned(),
        }
    })
}
