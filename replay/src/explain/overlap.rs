//! Whether the max() rule would have let a refused command in (DESIGN, "What a move holds"): on one
//! provider only the larger side of a move counts.

use super::account::Account;
use crate::units::amount;
use ledger::amounts::Holding;
use ledger::event::{Asked, Link, Rejected};
use ledger::ids::{ConsumerUuid, LinkId, MoveId, ProviderUuid};
use ledger::refusal::{Cause, ShortageCause};
use ledger::state::{Allocation, Allocations, MoveEntry, State, Write, held_after};
use serde::Serialize;
use std::sync::Arc;
use uuid::Uuid;

/// What the max() rule means for a refusal.
#[derive(Serialize)]
pub(super) struct MaxRule {
    /// The answer in one word.
    pub verdict: Verdict,
    /// The move whose two sides would count once.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// Who holds its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_holder: Option<ConsumerUuid>,
    /// Each (provider, class) where both sides meet or something was lacking.
    pub figures: Vec<Figure>,
}

/// Whether the rule would have let it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Yes.
    WouldFit,
    /// No: still short.
    StillShort,
    /// It was applied already, and it is not enough.
    WasApplied,
    /// Source and destination meet on no provider where something was lacking.
    SidesDoNotMeet,
    /// There is no move.
    NoMove,
    /// A double-up stores the larger side already.
    DoubleUp,
}

/// The arithmetic of one (provider, class) with and without the rule.
#[derive(Serialize)]
pub(super) struct Figure {
    /// Where.
    pub provider: ProviderUuid,
    /// Its name.
    pub provider_name: String,
    /// Of what.
    pub class: String,
    /// What the source has there.
    pub source: u64,
    /// What was asked for there.
    pub asked: u64,
    /// What would be held if both sides are added up.
    pub held_sum: u64,
    /// What would be held by the rule.
    pub held_max: u64,
    /// What there is.
    pub capacity: i64,
    /// It fits by the rule.
    pub fits: bool,
}

impl MaxRule {
    /// The rule applied to a refusal; none if the refusal is not about capacity.
    pub fn of(state: &State, body: &Rejected) -> Option<Self> {
        if !is_about_capacity(body) {
            return None;
        }
        if body.command == "double_up" {
            return Some(Self::without(Verdict::DoubleUp));
        }
        let Some((entry, migration, asked)) = sides(state, body) else {
            return Some(Self::without(Verdict::NoMove));
        };
        let figures = figures(state, body, migration, asked)?;
        let meets = |figure: &Figure| figure.held_sum > figure.held_max;
        let verdict = if !figures.iter().any(meets) {
            Verdict::SidesDoNotMeet
        } else if was_applied(state, body, &figures) {
            Verdict::WasApplied
        } else if figures.iter().all(|figure| figure.fits) {
            Verdict::WouldFit
        } else {
            Verdict::StillShort
        };
        Some(Self {
            verdict,
            move_id: Some(entry.this.id),
            source_holder: Some(migration),
            figures,
        })
    }

    fn without(verdict: Verdict) -> Self {
        Self { verdict, move_id: None, source_holder: None, figures: Vec::new() }
    }

    /// The answer in sentences.
    pub fn words(&self) -> Vec<String> {
        let rule = "the max() rule (on one provider only the larger side of a move counts)";
        let mut lines = vec![match self.verdict {
            Verdict::WouldFit => format!("With {rule} it would have been let in:"),
            Verdict::StillShort => format!("Even {rule} would not have let it in:"),
            Verdict::WasApplied => format!("It was counted by {rule}, and still does not fit:"),
            Verdict::SidesDoNotMeet => {
                return vec![format!(
                    "It has nothing to do with {rule}: what is lacking is not held by its own source."
                )];
            }
            Verdict::DoubleUp => {
                return vec![format!(
                    "A double-up is counted by {rule} always, and still does not fit."
                )];
            }
            Verdict::NoMove => {
                return vec![format!(
                    "It has nothing to do with {rule}: no move was in flight for it."
                )];
            }
        }];
        lines.extend(self.figures.iter().filter(|figure| figure.is_telling()).map(Figure::words));
        if self.verdict == Verdict::WouldFit {
            lines.push(
                "It is granted to the ledger's own commands: a `claim` for this consumer is the move's \
                 destination. Plain Placement calls are counted as Placement counts them, but with \
                 `--same-host-moves=max` a PUT with the request id that opened the move is granted it."
                    .into(),
            );
        }
        lines
    }
}

impl Figure {
    fn is_telling(&self) -> bool {
        !self.fits || self.held_sum != self.held_max
    }

    fn words(&self) -> String {
        let Self { provider_name, class, source, asked, held_sum, held_max, capacity, .. } = self;
        let verdict = match i128::from(*held_max) - i128::from(*capacity) {
            _ if self.fits => "fits".to_owned(),
            short => format!("short by {}", amount(class, short)),
        };
        format!(
            "  {class} on {provider_name}: max({source}, {asked}) = {} instead of {source} + {asked} = {}; held {held_max} \
             instead of {held_sum}, capacity {}: {verdict}",
            source.max(asked),
            source + asked,
            amount(class, i128::from(*capacity)),
        )
    }
}

fn is_about_capacity(body: &Rejected) -> bool {
    let shortages =
        body.shortages.iter().chain(body.passed_over.iter().flat_map(|option| &option.shortages));
    matches!(body.cause, Cause::Capacity | Cause::NoOptionFits)
        && shortages.into_iter().any(|shortage| shortage.cause == ShortageCause::Capacity)
}

/// The move that the refused command belongs to, who holds its source, and what was asked.
fn sides<'a>(
    state: &'a State,
    body: &'a Rejected,
) -> Option<(&'a Arc<MoveEntry>, ConsumerUuid, &'a Asked)> {
    let named = body.move_id.and_then(|id| state.moves().get(id));
    body.asked.iter().find_map(|asked| {
        let entry = named
            .filter(|entry| entry.this.instance == asked.consumer)
            .or_else(|| state.moves().live_of_instance(asked.consumer).next())?;
        let migration = entry.this.migration.filter(|&id| state.consumer(id).is_some())?;
        Some((entry, migration, asked))
    })
}

fn figures(
    state: &State,
    body: &Rejected,
    migration: ConsumerUuid,
    asked: &Asked,
) -> Option<Vec<Figure>> {
    let source = state.consumer(migration)?;
    let link = link_with(state, migration);
    let others = || {
        body.asked
            .iter()
            .filter(|other| other.consumer != asked.consumer && other.consumer != migration)
            .map(|other| write(state, other.consumer, &other.holding, None))
    };
    let apart: Vec<Write> =
        others().chain([write(state, asked.consumer, &asked.holding, None)]).collect();
    let linked: Vec<Write> = others()
        .chain([
            write(state, asked.consumer, &asked.holding, Some(link.clone())),
            Write { consumer: migration, after: source.allocations.clone(), link: Some(link) },
        ])
        .collect();
    let (sum, max) = (held_after(state, &apart), held_after(state, &linked));
    // The one who asks is the last but one, before the migration.
    let wanted = linked.iter().rev().nth(1).map_or(&[][..], |asked| &asked.after[..]);
    let figures = wanted.iter().filter_map(|want| {
        let key = (want.provider, want.class);
        let row = state.provider_row(want.provider)?;
        let account = Account::of(state, row.uuid, state.classes().name(want.class))?;
        let (sum, max) = (sum.get(&key)?, max.get(&key)?);
        Some(Figure {
            provider: account.provider,
            provider_name: account.provider_name,
            class: account.class,
            source: u64::from(source.amount(want.provider, want.class)),
            asked: u64::from(want.amount),
            held_sum: sum.after,
            held_max: max.after,
            capacity: account.capacity as i64,
            fits: max.after as f64 <= account.capacity || max.after <= max.before,
        })
    });
    Some(figures.collect())
}

/// The link that source and destination would be in: the source's own, or a new one.
fn link_with(state: &State, migration: ConsumerUuid) -> Link {
    let today = || Link { group: LinkId(Uuid::max()), overlap: state.overlap_today() };
    state.link_of(migration).unwrap_or_else(today)
}

fn write(state: &State, consumer: ConsumerUuid, holding: &Holding, link: Option<Link>) -> Write {
    let mut after = Allocations::new();
    for (provider, resources) in holding {
        let Some(provider) = state.provider_id(*provider) else {
            continue;
        };
        for (class, &amount) in resources {
            if let Some(class) = state.classes().id(class) {
                after.push(Allocation { provider, class, amount });
            }
        }
    }
    after.sort_unstable();
    Write { consumer, after, link }
}

/// Whether the rule was applied: the native commands always do, and of plain Placement calls the
/// refusal's own figures tell.
fn was_applied(state: &State, body: &Rejected, figures: &[Figure]) -> bool {
    if !matches!(body.command.as_str(), "replace_allocations" | "reshape") {
        return true;
    }
    body.shortages.iter().filter(|shortage| shortage.cause == ShortageCause::Capacity).any(
        |shortage| {
            let same = |figure: &&Figure| {
                figure.provider == shortage.provider && figure.class == shortage.class
            };
            let Some(figure) = figures.iter().find(same) else { return false };
            let Some(account) = Account::of(state, shortage.provider, &shortage.class) else {
                return false;
            };
            let short = i128::from(shortage.needed) - i128::from(shortage.free);
            figure.held_sum != figure.held_max
                && account.capacity_shown() + short == i128::from(figure.held_max)
        },
    )
}
