//! Whether the max() rule would have let a refused command in (DESIGN, "What a move holds"): on one
//! provider only the larger side of a move counts.

use super::account::Account;
use crate::shown::shown;
use crate::units::amount;
use ledger::amounts::Holding;
use ledger::command::SameHostMoves;
use ledger::event::{Asked, Link, Overlap, Rejected};
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
    /// The request id that opened the move, if the refused call had another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<String>,
    /// The request id of the refused call; none: it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Classes on which both sides meet and that the rule does not cover (`overlap_classes`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
    /// Each (provider, class) where both sides meet or something was lacking.
    pub figures: Vec<Figure>,
}

/// Whether the rule would have let it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Yes.
    WouldFit,
    /// It would, but the call had another request id than the move's opening, so that it was counted
    /// as a claim of another action.
    ForeignRequestId,
    /// What was lacking is of a class that the rule does not cover: both sides are added up.
    ClassNotCovered,
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
    /// The rule covers the class.
    pub covered: bool,
    /// It fits by the rule.
    pub fits: bool,
}

impl MaxRule {
    /// The rule applied to a refusal; none if the refusal is not about capacity.
    pub fn of(state: &State, body: &Rejected, request_id: Option<&str>) -> Option<Self> {
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
        let not_covered: Vec<String> = figures
            .iter()
            .filter(|figure| figure.is_left_out())
            .map(|figure| figure.class.clone())
            .collect();
        // Both counted for it: its own commands need no request id.
        let is_foreign = is_plain(body)
            && (request_id.is_none_or(str::is_empty)
                || entry.this.request_id.as_deref() != request_id);
        let is_granted = state.settings().same_host_moves == SameHostMoves::Max;
        let verdict = if !not_covered.is_empty() {
            Verdict::ClassNotCovered
        } else if !figures.iter().any(meets) {
            Verdict::SidesDoNotMeet
        } else if was_applied(state, body, &figures) {
            Verdict::WasApplied
        } else if figures.iter().all(|figure| figure.fits) {
            if is_foreign && is_granted { Verdict::ForeignRequestId } else { Verdict::WouldFit }
        } else {
            Verdict::StillShort
        };
        Some(Self {
            verdict,
            move_id: Some(entry.this.id),
            source_holder: Some(migration),
            opened_by: entry.this.request_id.clone().filter(|_| is_foreign),
            request_id: request_id.map(str::to_owned).filter(|_| is_foreign),
            not_covered,
            figures,
        })
    }

    fn without(verdict: Verdict) -> Self {
        Self {
            verdict,
            move_id: None,
            source_holder: None,
            opened_by: None,
            request_id: None,
            not_covered: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// The answer in sentences.
    pub fn words(&self) -> Vec<String> {
        let rule = "the max() rule (on one provider only the larger side of a move counts)";
        let mut lines = vec![match self.verdict {
            Verdict::WouldFit => format!("With {rule} it would have been let in:"),
            Verdict::ForeignRequestId => format!(
                "With {rule} it would have been let in, but it was counted as a claim of another action: {}.",
                self.ids()
            ),
            Verdict::ClassNotCovered => format!(
                "The setting overlap_classes leaves {} out of {rule}: both sides are added up.",
                self.not_covered.join(", ")
            ),
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
            if self.opened_by.is_some() {
                lines.push(format!("That would not have helped here: {}.", self.ids()));
            }
        }
        lines
    }

    fn ids(&self) -> String {
        let opened = match &self.opened_by {
            Some(id) => format!("the move was opened by {}", shown(id)),
            None => "the move was opened without a request id".to_owned(),
        };
        match self.request_id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => format!("its request id is {}, and {opened}", shown(id)),
            None => format!("it has no request id, and {opened}"),
        }
    }
}

impl Figure {
    /// Both sides are there, it is short, and the rule does not cover the class.
    fn is_left_out(&self) -> bool {
        !self.covered && !self.fits && self.source > 0 && self.asked > 0
    }

    fn is_telling(&self) -> bool {
        !self.fits || self.held_sum != self.held_max
    }

    fn words(&self) -> String {
        let Self { provider_name, class, source, asked, held_sum, held_max, capacity, .. } = self;
        let short = |short: i128| format!("short by {}", amount(class, short));
        if self.is_left_out() {
            return format!(
                "  {class} on {provider_name}: {source} + {asked} = {}; held {held_sum}, capacity {}: {}",
                source + asked,
                amount(class, i128::from(*capacity)),
                short(i128::from(*held_sum) - i128::from(*capacity)),
            );
        }
        let verdict = match i128::from(*held_max) - i128::from(*capacity) {
            _ if self.fits => "fits".to_owned(),
            by => short(by),
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
    let Overlap::Max(covered) = link.overlap.clone();
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
            covered: covered.covers(state.classes().name(want.class)),
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

/// Whether it is one of Placement's calls.
fn is_plain(body: &Rejected) -> bool {
    matches!(body.command.as_str(), "replace_allocations" | "reshape")
}

/// Whether the rule was applied: the native commands always do, and of plain Placement calls the
/// refusal's own figures tell.
fn was_applied(state: &State, body: &Rejected, figures: &[Figure]) -> bool {
    if !is_plain(body) {
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
