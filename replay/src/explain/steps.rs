//! What an accepted command did, with the arithmetic of each (provider, class) it touched.

use super::account::Account;
use crate::names::Names;
use crate::shown::shown;
use crate::units::amount;
use crate::words::{
    consumer_words, finding_words, move_words, passed_over_words, state_words, via_words,
};
use ledger::event::AllocationEvent;
use ledger::ids::ProviderUuid;
use ledger::state::State;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The arithmetic of an accepted command.
#[derive(Serialize)]
pub(super) struct Steps {
    /// Each (provider, class) it touched.
    figures: Vec<Figure>,
    #[serde(skip)]
    body: AllocationEvent,
}

#[derive(Serialize)]
struct Figure {
    /// What was held before.
    held_before: u64,
    /// The account after.
    #[serde(flatten)]
    account: Account,
    /// What the consumers' allocations add up to after; more than `held` while a move overlaps.
    allocated: u64,
}

impl Steps {
    /// The arithmetic of `body`, by the states before and after it.
    pub fn of(before: &State, after: &State, body: &AllocationEvent) -> Self {
        let touched: BTreeSet<(ProviderUuid, &str)> = body
            .consumers
            .iter()
            .flat_map(|change| &change.holdings)
            .flat_map(|holding| {
                holding.amounts.iter().map(|held| (holding.provider, held.class.as_str()))
            })
            .collect();
        let figures = touched.into_iter().filter_map(|(provider, class)| {
            let account = Account::of(after, provider, class)?;
            let (id, number) = (after.provider_id(provider)?, after.classes().id(class)?);
            Some(Figure {
                held_before: Account::of(before, provider, class).map_or(0, |account| account.held),
                allocated: after.holders(id).map(|row| u64::from(row.amount(id, number))).sum(),
                account,
            })
        });
        Self { figures: figures.collect(), body: body.clone() }
    }

    /// Writes it for people.
    pub fn write(&self, names: &Names, out: &mut dyn Write) -> io::Result<()> {
        let body = &self.body;
        writeln!(out, "  came by {}", via_words(body.via))?;
        for change in &body.consumers {
            writeln!(out, "  {}", consumer_words(change, &body.moves, names))?;
        }
        if let Some(option) = body.option {
            writeln!(out, "  option {option} was taken")?;
        }
        for option in &body.passed_over {
            writeln!(out, "  {}", passed_over_words(option, names))?;
        }
        self.figures.iter().try_for_each(|figure| writeln!(out, "  {}", figure.words()))?;
        for this in &body.moves {
            writeln!(out, "  move: {}, {}", move_words(this), state_words(this.state))?;
        }
        if let Some(reason) = &body.reason {
            writeln!(out, "  reason: {}", shown(reason))?;
        }
        if let Some(finding) = body.finding {
            writeln!(out, "  LOOK: {}", finding_words(finding))?;
        }
        Ok(())
    }
}

impl Figure {
    /// `DISK_GB on compute1: held 0 -> 1028 GB of 1028 GB = (total ...), free 0 GB`
    fn words(&self) -> String {
        let Self { account, held_before, allocated } = self;
        let class = &account.class;
        let mut words = format!(
            "{class} on {}: held {held_before} -> {} of {}, free {}",
            account.provider_name,
            amount(class, account.held.into()),
            account.capacity_words(),
            amount(class, account.free())
        );
        if *allocated != account.held {
            let held = account.held;
            words.push_str(&format!(
                "; allocations add up to {allocated}, but a move that stays here counts its larger side only: {held}"
            ));
        }
        words
    }
}
