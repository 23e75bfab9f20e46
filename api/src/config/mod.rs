//! Settings: from the command line, environment variables and a TOML file, in that order of
//! precedence, and defaults for what none of them says.

mod candidates;
mod cli;
mod file;
mod lag;
mod nats;
mod same_host_moves;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use candidates::{CandidatesArgs, CandidatesConfig, GenerationStrategy};
pub use cli::{Cli, Command, ServeArgs};
pub use lag::LagArgs;
pub use nats::{NatsArgs, NatsConfig};
pub use same_host_moves::SameHostMoves;

use crate::lag::Bounds;
use crate::logging::LogFormat;

/// Where the server listens unless told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8778";
/// Where the data is kept unless told otherwise.
pub const DEFAULT_DATA_DIR: &str = "./allocd-data";
/// How many connections are served at a time unless told otherwise.
pub const DEFAULT_CONNECTIONS: usize = 4_096;
/// How many seconds a move may stay open unless told otherwise.
pub const DEFAULT_OPEN_MOVE_BOUND: u32 = 3_600;
/// What is logged unless told otherwise.
pub const DEFAULT_LOG: &str = "info";

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is not what is expected. The line itself is not shown: it may hold a secret.
    #[error("the configuration file {path} cannot be used: line {line}: {what}")]
    File {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Why.
        what: String,
    },
    /// A value that cannot be.
    #[error("{name} cannot be {value:?}: {reason}")]
    Value {
        /// The setting.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What it should be.
        reason: &'static str,
    },
    /// Options that do not go together.
    #[error("{name} cannot be used so: {reason}")]
    Together {
        /// The first of them.
        name: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// The address of NATS.
    #[error("nats cannot be used: {0}")]
    Nats(String),
}

/// All settings of `allocd serve`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where the data is kept.
    pub data_dir: PathBuf,
    /// NATS; none: nothing is done there.
    pub nats: Option<NatsConfig>,
    /// How far what follows the ledger may lag before the server counts as not ready.
    pub bounds: Bounds,
    /// The policy file.
    pub policy_file: Option<PathBuf>,
    /// Whether the built-in policy rules alone decide, without `admin` being allowed everything.
    pub enforce_new_defaults: bool,
    /// Allowed origins of cross-origin requests, separated by commas.
    pub cors_allowed_origin: Option<String>,
    /// Headers that such requests may have, separated by commas.
    pub cors_allow_headers: Option<String>,
    /// How many connections are served at a time.
    pub max_connections: usize,
    /// Start although acknowledged events are gone. No variable and no file sets it: it is meant for
    /// one start.
    pub accept_lost_tail: bool,
    /// Bytes that must be free for writes to be taken; none: the ledger's own bound.
    pub min_free_bytes: Option<u64>,
    /// Seconds that a move may stay open before it is a finding.
    pub open_move_bound: u32,
    /// What counts while a move by plain Placement calls has both sides on one provider.
    pub same_host_moves: SameHostMoves,
    /// How searches for candidates answer.
    pub candidates: CandidatesConfig,
    /// What is logged.
    pub log: String,
    /// How log lines look.
    pub log_format: LogFormat,
}

impl Config {
    /// Puts the settings together.
    ///
    /// # Errors
    /// If the file or one of the values cannot be used.
    pub fn resolve(args: ServeArgs) -> Result<Self, ConfigError> {
        let mut file = match &args.config {
            Some(path) => file::read(path)?,
            None => file::File::default(),
        };
        let (nats, lag, file_candidates) = (file.nats(), file.lag(), file.candidates());
        let listen = args.listen.or(file.listen).unwrap_or_else(|| DEFAULT_LISTEN.to_owned());
        check_auth(args.auth_strategy.or(file.auth_strategy))?;
        let data_dir = args.data_dir.or(file.data_dir).unwrap_or_else(|| DEFAULT_DATA_DIR.into());
        let connections =
            args.max_connections.or(file.max_connections).unwrap_or(DEFAULT_CONNECTIONS);
        Ok(Self {
            listen: parse_listen(&listen)?,
            data_dir,
            nats: args.nats.or(nats).resolve()?,
            bounds: args.lag.or(lag).bounds(),
            policy_file: args.policy_file.or(file.policy_file),
            enforce_new_defaults: args
                .enforce_new_defaults
                .or(file.enforce_new_defaults)
                .unwrap_or(true),
            cors_allowed_origin: args.cors_allowed_origin.or(file.cors_allowed_origin),
            cors_allow_headers: args.cors_allow_headers.or(file.cors_allow_headers),
            max_connections: connections.max(1),
            accept_lost_tail: args.accept_lost_tail,
            min_free_bytes: args.min_free_bytes.or(file.min_free_bytes),
            open_move_bound: args
                .open_move_bound
                .or(file.open_move_bound)
                .unwrap_or(DEFAULT_OPEN_MOVE_BOUND),
            same_host_moves: args.same_host_moves.or(file.same_host_moves).unwrap_or_default(),
            candidates: args.candidates.or(file_candidates).resolve()?,
            log: args.log.or(file.log).unwrap_or_else(|| DEFAULT_LOG.to_owned()),
            log_format: args.log_format.or(file.log_format).unwrap_or_default(),
        })
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr, ConfigError> {
    let reason = "it should be an address and a port, such as 127.0.0.1:8778";
    text.parse().map_err(|_| ConfigError::Value { name: "listen", value: text.to_owned(), reason })
}

fn check_auth(strategy: Option<String>) -> Result<(), ConfigError> {
    match strategy.as_deref() {
        None | Some("noauth2") => Ok(()),
        Some(other) => Err(ConfigError::Value {
            name: "auth-strategy",
            value: other.to_owned(),
            reason: "this version knows noauth2 only",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use projector::candidates::Strategy;
    use std::io::Write;

    #[test]
    fn nothing_said_means_the_defaults() {
        let config = Config::resolve(ServeArgs::default()).expect("the defaults");
        assert_eq!(config.listen.to_string(), DEFAULT_LISTEN);
        assert_eq!(config.data_dir, PathBuf::from(DEFAULT_DATA_DIR));
        assert!(config.enforce_new_defaults && config.nats.is_none());
        assert_eq!(config.same_host_moves, SameHostMoves::Sum);
    }

    #[test]
    fn the_file_comes_after_the_arguments() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        writeln!(
            file,
            "listen = \"127.0.0.1:1\"\ndata-dir = \"/tmp/a\"\nenforce-new-defaults = false\n\
             same-host-moves = \"max\"\nmax-allocation-candidates = 9\n\
             randomize_allocation_candidates = true\n\
             allocation-candidates-generation-strategy = \"breadth-first\""
        )
        .expect("written");
        let args = ServeArgs {
            config: Some(file.path().to_owned()),
            listen: Some("127.0.0.1:2".into()),
            ..ServeArgs::default()
        };
        let config = Config::resolve(args).expect("settings");
        assert_eq!(config.listen.port(), 2);
        assert_eq!(config.data_dir, PathBuf::from("/tmp/a"));
        assert!(!config.enforce_new_defaults);
        assert_eq!(config.same_host_moves, SameHostMoves::Max);
        assert_eq!(config.candidates.most.map(|most| most.get()), Some(9));
        assert_eq!(config.candidates.strategy, Strategy::BreadthFirst);
        assert!(config.candidates.randomize);
    }

    #[test]
    fn what_cannot_be_is_told() {
        let bad = ServeArgs { listen: Some("pony".into()), ..ServeArgs::default() };
        assert!(matches!(Config::resolve(bad), Err(ConfigError::Value { name: "listen", .. })));
        let bad = ServeArgs { auth_strategy: Some("keystone".into()), ..ServeArgs::default() };
        assert!(matches!(
            Config::resolve(bad),
            Err(ConfigError::Value { name: "auth-strategy", .. })
        ));
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        writeln!(file, "lisen = \"127.0.0.1:1\"").expect("written");
        let bad = ServeArgs { config: Some(file.path().to_owned()), ..ServeArgs::default() };
        assert!(matches!(Config::resolve(bad), Err(ConfigError::File { line: 1, .. })));
    }

    #[test]
    fn a_mistake_in_the_file_shows_no_secret() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        writeln!(file, "listen = \"127.0.0.1:1\"\nnats-password = \"hush\" hush").expect("written");
        let bad = ServeArgs { config: Some(file.path().to_owned()), ..ServeArgs::default() };
        let told = Config::resolve(bad).expect_err("malformed").to_string();
        assert!(told.contains("line 2") && !told.contains("hush"), "{told}");
    }
}
