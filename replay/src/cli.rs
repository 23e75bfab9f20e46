//! The command line.

use clap::{ArgGroup, Args, Parser, Subcommand};
use ledger::ids::{ConsumerUuid, MoveId, ProviderUuid};
use ledger::time::Timestamp;
use std::path::PathBuf;
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  Why did last night's resize fail? The request id is in Nova's log and in `openstack server event list`.
      replay explain --request-id req-5f0c2f4e-8f7a-4f0e-9a44-0d7f2cbb1c1b
  What has happened to a server?
      replay history --consumer 9a4f7d0c-7c5e-4f0a-8c0f-3f1d5b8f2a11
  Who held what on a host at three in the morning?
      replay at 2026-11-30T03:00:00Z --provider 2f1b6a0e-33d4-4e8c-9d8e-6c1d1c7b9a10
  Is the whole ledger sound?
      replay verify --data-dir /var/lib/allocd

Exit status: 0 all is well; 1 something is wrong with the ledger; 2 wrong usage, or no ledger to open.
Colours are used on a terminal only, and never when NO_COLOR is set.";

/// Looks into an allocd ledger, that of a running server included: any moment of its past,
/// histories, explanations, verification. Nothing is changed, the server is not disturbed.
#[derive(Debug, Parser)]
#[command(name = "replay", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show the state at any moment: providers with what is held and free, consumers, moves
    At(AtArgs),
    /// List what happened to a consumer, provider or move, or by a request: one line an event
    History(HistoryArgs),
    /// Say why something was refused or what it did, with the arithmetic of each step
    Explain(ExplainArgs),
    /// Check the whole ledger: chain, gaps, digests, invariants, checkpoints
    Verify(VerifyArgs),
}

/// Which ledger, and how to show it.
#[derive(Debug, Args)]
pub struct Target {
    /// The server's data directory; the server may be running
    #[arg(long, value_name = "DIR", env = "ALLOCD_DATA_DIR", default_value = "./allocd-data")]
    pub data_dir: PathBuf,
    /// Print JSON for programs (history: one object a line)
    #[arg(long)]
    pub json: bool,
}

/// `replay at`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  replay at latest
  replay at 1234 --consumer 9a4f7d0c-7c5e-4f0a-8c0f-3f1d5b8f2a11
  replay at 2026-11-30T03:00:00+01:00 --provider 2f1b6a0e-33d4-4e8c-9d8e-6c1d1c7b9a10 --json

A group of events is applied whole: in the middle of one, the state before it is shown.
`held` counts a move that stays on its provider by its rule, so it may be less than the sum of allocations.")]
pub struct AtArgs {
    /// A sequence, an RFC 3339 time, or `latest`
    #[arg(value_name = "SEQUENCE|TIME|latest")]
    pub point: Point,
    /// Show this provider and who holds what of it
    #[arg(long, value_name = "UUID")]
    pub provider: Option<ProviderUuid>,
    /// Show this consumer
    #[arg(long, value_name = "UUID")]
    pub consumer: Option<ConsumerUuid>,
    /// Show this move
    #[arg(long = "move", value_name = "UUID")]
    pub move_id: Option<MoveId>,
    /// Show at most this many providers, consumers and moves each; 0: all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Which ledger.
    #[command(flatten)]
    pub target: Target,
}

/// `replay history`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("of").required(true).args(["consumer", "provider", "move_id", "request_id"])))]
#[command(after_help = "\
Examples:
  replay history --consumer 9a4f7d0c-7c5e-4f0a-8c0f-3f1d5b8f2a11
  replay history --provider 2f1b6a0e-33d4-4e8c-9d8e-6c1d1c7b9a10 --generation 5     what made generation 4 into 5
  replay history --request-id req-5f0c2f4e-8f7a-4f0e-9a44-0d7f2cbb1c1b --json

Each line: sequence, time, kind of event, what it changed from what to what, generation, who asked, request id.
`*` marks an event that the server has not yet acknowledged (not yet durable).")]
pub struct HistoryArgs {
    /// Of a consumer: a server, a migration, a volume
    #[arg(long, value_name = "UUID")]
    pub consumer: Option<ConsumerUuid>,
    /// Of a resource provider
    #[arg(long, value_name = "UUID")]
    pub provider: Option<ProviderUuid>,
    /// Of a move
    #[arg(long = "move", value_name = "UUID")]
    pub move_id: Option<MoveId>,
    /// Of one request (OpenStack's global request id)
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Only the event that led to this generation (of the provider or consumer)
    #[arg(long, value_name = "N")]
    pub generation: Option<u32>,
    /// Only events after this sequence
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    pub after: u64,
    /// At most this many events; 0: all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: usize,
    /// Which ledger.
    #[command(flatten)]
    pub target: Target,
}

/// `replay explain`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["sequence", "consumer", "move_id", "request_id"])))]
#[command(after_help = "\
Examples:
  replay explain 1234
  replay explain --request-id req-5f0c2f4e-8f7a-4f0e-9a44-0d7f2cbb1c1b
  replay explain --move 0193a5c4-1f0e-7c3a-9a51-7f2f3c1d2e4b
  replay explain --consumer 9a4f7d0c-7c5e-4f0a-8c0f-3f1d5b8f2a11")]
pub struct ExplainArgs {
    /// One event
    #[arg(value_name = "SEQUENCE")]
    pub sequence: Option<u64>,
    /// All that one request did or was refused
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// A move from its opening to its end
    #[arg(long = "move", value_name = "UUID")]
    pub move_id: Option<MoveId>,
    /// All that happened to a consumer
    #[arg(long, value_name = "UUID")]
    pub consumer: Option<ConsumerUuid>,
    /// At most this many events, the latest; 0: all
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub limit: usize,
    /// Which ledger.
    #[command(flatten)]
    pub target: Target,
}

/// `replay verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Checked: the hash chain, gaps, digests of bodies and private parts, that groups are whole, that time and
generations never go back, that no accepted command left more held than there is capacity for, that what is
held equals the sum of its holders, and that the newest checkpoint gives the same state as folding from the start.

Examples:
  replay verify --data-dir /var/lib/allocd
  replay verify --json | jq .findings")]
pub struct VerifyArgs {
    /// Which ledger.
    #[command(flatten)]
    pub target: Target,
}

/// A moment of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The newest event.
    Latest,
    /// After this event.
    Sequence(u64),
    /// After the last event recorded at or before this time.
    Time(Timestamp),
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text
                .parse()
                .map(Self::Sequence)
                .map_err(|_| "the sequence is too large".into());
        }
        let time: jiff::Timestamp = text.parse().map_err(
            |_| "neither a sequence, nor an RFC 3339 time (2026-11-30T03:00:00Z), nor `latest`",
        )?;
        Ok(Self::Time(Timestamp::from_micros(time.as_microsecond())))
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
    fn points_are_sequences_times_or_latest() {
        assert_eq!("latest".parse(), Ok(Point::Latest));
        assert_eq!("12".parse(), Ok(Point::Sequence(12)));
        let time = "1970-01-01T01:00:00.5+01:00".parse();
        assert_eq!(time, Ok(Point::Time(Timestamp::from_micros(500_000))));
        assert!("yesterday".parse::<Point>().is_err());
        assert!("99999999999999999999".parse::<Point>().is_err());
    }
}
