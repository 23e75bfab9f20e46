//! Every limit in one place. A limit that is hit gives a clear refusal, never a truncated success.

/// The largest amount, total, reserved, unit or step (Placement: a signed 32-bit integer).
pub const AMOUNT: u32 = i32::MAX as u32;
/// Events of one group, so that a log that is a replicated stream can carry it.
pub const GROUP_EVENTS: usize = 10_000;
/// Encoded bytes of one group, private parts included: they are written with it.
pub const GROUP_BYTES: usize = 512 * 1024;
/// Encoded bytes of one batch, private parts included: the groups of one commit.
pub const BATCH_BYTES: usize = 768 * 1024;
/// Encoded bytes of the record of a refusal, or of one of refusals that were suppressed: a body of
/// [`REJECTED_BYTES`] or [`SUPPRESSED_BYTES`], a header with a request id, a command id and its
/// project, and a private part with a user, a project and an address, each at its longest.
pub const NOTE_BYTES: usize = 12 * 1024;
/// Bytes that must be free on a ledger's file system unless the operator says otherwise: RocksDB's
/// memtables, a write-ahead log and one compaction of what they become must find room.
pub const FREE_BYTES: u64 = 256 * 1024 * 1024;
/// Bytes of the events that one `release_all` adds: half a group, so that other commands of its list
/// and the removal of what was to go once it is free find room beside it. It is some 200 consumers.
pub const RELEASE_ALL_BYTES: usize = GROUP_BYTES / 2;
/// Bytes of a record beside its body, for what is counted before it is encoded: a header and a
/// private part with names of the usual length. With all of them at their longest it is 2 KiB, for
/// which half a group leaves room.
pub const BESIDE_BODY_BYTES: usize = 1_024;
/// Bytes that any record takes at least: three hashes, five ids and the names of the header's
/// fields. With it that which cannot fit into a group is known before it is decided.
pub const RECORD_BYTES_LEAST: usize = 256;
/// Events after which a group is refused without looking at the rest of it: more records would
/// not fit into [`GROUP_BYTES`].
pub const EVENTS: usize = GROUP_BYTES / RECORD_BYTES_LEAST;
/// Consumers of one write of allocations: each that changes is an event of its own.
pub const CONSUMERS: usize = EVENTS;
/// Consumers of one reshape, which is one event: each takes at least 96 bytes of it (its id, its
/// owner, and the names of the fields).
pub const RESHAPED_CONSUMERS: usize = GROUP_BYTES / 96;
/// Allocations (consumer, provider, class) of one write: each takes at least 24 bytes of its event
/// (`class`, `before` and `after` with their values).
pub const ALLOCATIONS: usize = GROUP_BYTES / 24;
/// Inventories of one write: each takes at least 64 bytes of its event (seven figures with their
/// names).
pub const INVENTORIES: usize = GROUP_BYTES / 64;
/// Names of traits, aggregates or classes in one write, repeated ones included: 8 bytes each would
/// fill a third of a group, and looking them up takes the writer some 10 ms.
pub const NAMES: usize = 20_000;
/// Steps of work for the commands of one list together, or for one command alone: an option that
/// is tried is one, and so is each amount of it; so are four consumers or allocations of a plain
/// write, and each command. A step takes the writer up to 5 microseconds, so that nobody
/// waits for one list longer than some 50 ms.
pub const STEPS: u64 = 10_000;
/// Commands of one submitted list.
pub const LIST_COMMANDS: usize = 10_000;
/// Submissions waiting for the writer; one more is answered "queue full".
pub const QUEUE: usize = 4_096;
/// Bytes of a client's command id.
pub const COMMAND_ID_BYTES: usize = 255;
/// Bytes of a request id.
pub const REQUEST_ID_BYTES: usize = 255;
/// Characters of names of classes, traits, consumer types, projects and users (Placement).
pub const NAME_CHARS: usize = 255;
/// Characters of a provider's name (Placement).
pub const PROVIDER_NAME_CHARS: usize = 200;
/// Characters of a reason given with a command.
pub const REASON_CHARS: usize = 1_024;
/// Ordered options of one claim.
pub const OPTIONS: usize = 1_000;
/// Bytes of a candidates query that a command carries.
pub const COMMAND_QUERY_BYTES: usize = 8 * 1024;
/// Bytes of such a query that a refusal tells.
pub const QUERY_TOLD_BYTES: usize = 384;
/// Conditions that the refusal of a search in vain tells, each of [`CONDITION_BYTES`].
pub const STEPS_TOLD: usize = 8;
/// Hosts of one move that a resize looks for: the destination and its alternates.
pub const ATTEMPTS: u32 = 16;
/// Hosts that one resize ignores.
pub const HOSTS_IGNORED: usize = 1_000;
/// Shortages that a refusal lists.
pub const SHORTAGES: usize = 16;
/// Limits of what projects hold, in all.
pub const QUOTAS: usize = 100_000;
/// Providers that a refusal lists.
pub const PROVIDERS_TOLD: usize = 16;
/// Consumers that a refusal names: as many as shortages, some 60 bytes each in its record.
pub const HOLDERS_TOLD: usize = 16;
/// Holdings that a refusal looks at to count and name those who are in its way. Each costs the
/// writer less than a microsecond, so that a refusal stays well below the time of a commit; hosts
/// have a few hundred, only storage that a whole cloud shares has more.
pub const HOLDERS_COUNTED: usize = 4_096;
/// Options passed over that an outcome or refusal lists.
pub const OPTIONS_TOLD: usize = 32;
/// Encoded bytes of a `Rejected` body.
pub const REJECTED_BYTES: usize = 2 * 1024;
/// Encoded bytes of a `RefusalsSuppressed` body: 16 projects with ids of a usual length fit, of the
/// longest names the first few.
pub const SUPPRESSED_BYTES: usize = 4 * 1024;
/// Bytes of a query in a `SearchFailed` body.
pub const QUERY_BYTES: usize = 1_024;
/// Groups of a query that a `SearchFailed` body tells of.
pub const SEARCHED_GROUPS: usize = 16;
/// Conditions that a `SearchFailed` body tells of, all groups together.
pub const SEARCH_STEPS: usize = 32;
/// Bytes of one condition, or of a group's suffix, in a `SearchFailed` body.
pub const CONDITION_BYTES: usize = 128;
/// Resource classes of one ledger, standard and custom, deleted ones included.
pub const CLASSES: usize = 60_000;
