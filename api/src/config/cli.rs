//! The command line. Every option can also be given as an environment variable.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::SameHostMoves;
use super::candidates::CandidatesArgs;
use super::lag::LagArgs;
use super::nats::NatsArgs;
use crate::logging::LogFormat;

/// A ledger of cloud capacity that speaks the OpenStack Placement API.
///
/// It records who holds how much of which resource provider, decides every change, and keeps
/// each change as an event that is never altered. `allocd` alone is `allocd serve` with its
/// defaults: it listens on 127.0.0.1:8778 and keeps its data in ./allocd-data.
#[derive(Debug, Parser)]
#[command(name = "allocd", version, max_term_width = 100)]
pub struct Cli {
    /// What to do; nothing said means `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API.
    ///
    /// Each option can also be set as the environment variable shown with it, or in the file
    /// given by --config, under its own name (`data-dir = "/var/lib/allocd"`). The command line
    /// comes first, then the environment, then the file.
    ///
    /// SIGTERM and SIGINT end the server: it answers what is in hand, writes a checkpoint and
    /// leaves.
    Serve(Box<ServeArgs>),
}

/// The options of `allocd serve`.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// A TOML file with settings
    #[arg(long, value_name = "FILE", env = "ALLOCD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8778]
    #[arg(long, value_name = "ADDRESS:PORT", env = "ALLOCD_LISTEN")]
    pub listen: Option<String>,
    /// The directory of the ledger; it is made if it is not there [default: ./allocd-data]
    #[arg(long, value_name = "DIR", env = "ALLOCD_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// NATS.
    #[command(flatten)]
    pub nats: NatsArgs,
    /// How far views and NATS may lag.
    #[command(flatten)]
    pub lag: LagArgs,
    /// How callers are known. noauth2 believes what they say: listen only where a proxy that
    /// authenticates, or nobody else, can connect [default: noauth2]
    #[arg(long, value_name = "NAME", env = "AUTH_STRATEGY")]
    pub auth_strategy: Option<String>,
    /// A YAML file of policy rules ("rule name": "expression") that take the place of the
    /// built-in ones
    #[arg(long, value_name = "FILE", env = "POLICY_FILE")]
    pub policy_file: Option<PathBuf>,
    /// Whether the built-in policy rules alone decide; if not, the role admin will do for all of
    /// them [default: true]
    #[arg(long, value_name = "BOOL", env = "ENFORCE_NEW_DEFAULTS",
          value_parser = clap::builder::BoolishValueParser::new())]
    pub enforce_new_defaults: Option<bool>,
    /// Answer cross-origin requests of browsers from these origins, separated by commas
    /// [default: none]
    #[arg(long, value_name = "ORIGINS", env = "CORS_ALLOWED_ORIGIN")]
    pub cors_allowed_origin: Option<String>,
    /// Headers that cross-origin requests may have, separated by commas
    #[arg(long, value_name = "HEADERS", env = "CORS_ALLOW_HEADERS")]
    pub cors_allow_headers: Option<String>,
    /// How many connections are served at a time; more have to wait [default: 4096]
    #[arg(long, value_name = "N", env = "ALLOCD_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Refuse commands while less than this is free on the file system of the data; 0: never
    /// [default: 268435456, or an eighth of the file system if that is less]
    #[arg(long, value_name = "BYTES", env = "ALLOCD_MIN_FREE_BYTES")]
    pub min_free_bytes: Option<u64>,
    /// A move that stays open, without a destination, for longer than this is listed as an orphan,
    /// logged and counted [default: 3600]
    #[arg(long, value_name = "SECONDS", env = "ALLOCD_OPEN_MOVE_BOUND")]
    pub open_move_bound: Option<u32>,
    /// What counts while a move by plain Placement calls has both sides on one provider: sum, both
    /// (as Placement does), or max, the larger, if both calls have one X-OpenStack-Request-ID
    /// [default: sum]
    #[arg(long, value_enum, env = "ALLOCD_SAME_HOST_MOVES")]
    pub same_host_moves: Option<SameHostMoves>,
    /// How searches for candidates answer.
    #[command(flatten)]
    pub candidates: CandidatesArgs,
    /// Start although the end of the ledger is gone that somebody was told of. Its sequences are
    /// used again: only for a restored backup, when all that followed the old ones starts anew too
    #[arg(long)]
    pub accept_lost_tail: bool,
    /// What to log: a level (error, warn, info, debug, trace), or a list of target=level
    /// [default: info]
    #[arg(long, value_name = "FILTER", env = "ALLOCD_LOG")]
    pub log: Option<String>,
    /// How log lines look [default: human]
    #[arg(long, value_enum, env = "ALLOCD_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
}

impl Cli {
    /// The options of `serve`, whether the command was named or not.
    #[must_use]
    pub fn into_serve(self) -> ServeArgs {
        match self.command {
            Some(Command::Serve(args)) => *args,
            // Parsing it as if it had been named reads the environment.
            None => match Self::parse_from(["allocd", "serve"]).command {
                Some(Command::Serve(args)) => *args,
                None => ServeArgs::default(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_are_read() {
        let cli = Cli::parse_from([
            "allocd",
            "serve",
            "--listen",
            "[::1]:80",
            "--enforce-new-defaults",
            "0",
        ]);
        let args = cli.into_serve();
        assert_eq!(args.listen.as_deref(), Some("[::1]:80"));
        assert_eq!(args.enforce_new_defaults, Some(false));
    }
}
