//! The TOML file: the same settings under the same names as on the command line.

use std::path::{Path, PathBuf};

use serde::Deserialize;

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
    pub auth_strategy: Option<String>,
    pub policy_file: Option<PathBuf>,
    pub enforce_new_defaults: Option<bool>,
    pub cors_allowed_origin: Option<String>,
    pub cors_allow_headers: Option<String>,
    pub max_connections: Option<usize>,
    pub open_move_bound: Option<u32>,
    pub same_host_moves: Option<SameHostMoves>,
    pub log: Option<String>,
    pub log_format: Option<LogFormat>,
}

/// Reads a file.
pub fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text)
        .map_err(|source| ConfigError::File { path: path.to_owned(), source: Box::new(source) })
}
