//! A refusal explained: what was asked, what there was, who held it, short by how much.

use super::account::{Account, Holders};
use super::overlap::MaxRule;
use crate::names::Names;
use crate::roles::{self, Role, kind_word};
use crate::shown::shown;
use crate::units::amount;
use crate::words::{cause_words, holding_words, passed_over_words, state_words};
use ledger::amounts::Holding;
use ledger::event::Rejected;
use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::record::Header;
use ledger::refusal::{Cause, Holders as HeldBy, Shortage, ShortageCause};
use ledger::state::State;
use ledger::time::Timestamp;
use serde::Serialize;
use std::io::{self, Write};

/// A refusal explained.
#[derive(Serialize)]
pub(super) struct RefusalReport {
    command: String,
    /// How many commands of the list stood before the one that was refused.
    index: u32,
    cause: Cause,
    cause_words: String,
    /// The move it was about, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    move_words: Option<String>,
    /// The candidates query that the command asked with.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    asked: Vec<AskedReport>,
    /// Who holds what was in the way, as the refusal told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<Box<HeldBy>>,
    shortages: Vec<ShortageReport>,
    /// Options passed over, in words.
    passed_over: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rule: Option<MaxRule>,
}

#[derive(Serialize)]
struct AskedReport {
    consumer: ConsumerUuid,
    role: Role,
    holding: Holding,
    words: String,
}

#[derive(Serialize)]
struct ShortageReport {
    provider: ProviderUuid,
    provider_name: String,
    class: String,
    /// Asked for there, by all of the command's consumers.
    asked: u64,
    /// What the command needed there, by the refusal.
    needed: u64,
    free: i64,
    /// needed - free; none: another rule forbade it.
    #[serde(skip_serializing_if = "Option::is_none")]
    short_by: Option<i128>,
    cause: ShortageCause,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
    holders: Holders,
}

impl RefusalReport {
    /// Explains a refusal by the state that it met.
    pub fn of(before: &State, body: &Rejected, header: &Header, names: &Names) -> Self {
        let asked = body.asked.iter().map(|asked| AskedReport {
            consumer: asked.consumer,
            role: roles::role(before, asked.consumer).0,
            holding: asked.holding.clone(),
            words: holding_words(&asked.holding, names),
        });
        let of_options = body.passed_over.iter().flat_map(|option| &option.shortages);
        let mut shortages: Vec<ShortageReport> = Vec::new();
        for shortage in body.shortages.iter().chain(of_options) {
            let told = |told: &ShortageReport| {
                told.provider == shortage.provider
                    && told.class == shortage.class
                    && told.cause == shortage.cause
            };
            if !shortages.iter().any(told) {
                shortages.push(shortage_report(before, body, shortage, header.recorded_at, names));
            }
        }
        Self {
            command: body.command.clone(),
            index: body.index,
            cause: body.cause.clone(),
            cause_words: match (&body.cause, body.options) {
                (Cause::NoOptionFits, 1..) => format!("none of the {} options fits", body.options),
                (cause, _) => cause_words(cause, names),
            },
            move_words: move_words(before, body),
            query: query(body),
            asked: asked.collect(),
            held_by: body.held_by.clone(),
            shortages,
            passed_over: body
                .passed_over
                .iter()
                .map(|option| passed_over_words(option, names))
                .collect(),
            max_rule: MaxRule::of(before, body, header.request_id.as_deref()),
        }
    }

    /// Writes it for people.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "  {} was refused: {}", self.command, self.cause_words)?;
        if self.index > 0 {
            writeln!(
                out,
                "  it was number {} of a list; the whole list was refused",
                self.index + 1
            )?;
        }
        if let Some(words) = &self.move_words {
            writeln!(out, "  about    {words}")?;
        }
        for asked in &self.asked {
            let whose = format!("{} {}", asked.role.word(), asked.consumer);
            match &self.query {
                Some(query) => writeln!(out, "  asked    for {whose}: a candidate for {query}")?,
                None => writeln!(out, "  asked    for {whose}: {}", asked.words)?,
            }
            if self.query.is_some() && !asked.holding.is_empty() {
                writeln!(out, "  found    first: {}", asked.words)?;
            }
        }
        for words in &self.passed_over {
            writeln!(out, "  {words}")?;
        }
        self.shortages.iter().try_for_each(|shortage| shortage.write(out))?;
        if self.shortages.is_empty() {
            self.write_held_by(out)?;
        }
        for line in self.max_rule.iter().flat_map(MaxRule::words) {
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }

    /// Those who hold what was to go; of a shortage its own report says more.
    fn write_held_by(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(held_by) = &self.held_by else { return Ok(()) };
        let least = if held_by.more { "at least " } else { "" };
        let (consumers, moves) = (held_by.consumers, held_by.moves);
        writeln!(out, "  held by  {least}{consumers} consumers, {moves} live moves among them")?;
        for holder in &held_by.first {
            write!(out, "    {}", holder.consumer)?;
            if let Some(amount) = holder.amount {
                write!(out, ": {amount}")?;
            }
            match holder.move_id {
                Some(id) => writeln!(out, ", move {id}")?,
                None => writeln!(out)?,
            }
        }
        Ok(())
    }
}

/// The query that a command asked with; records from before it was kept have it in the cause only.
fn query(body: &Rejected) -> Option<String> {
    let of_cause = match &body.cause {
        Cause::NoCandidate { query, .. } => Some(query),
        _ => None,
    };
    body.query.as_ref().or(of_cause).map(|query| shown(query))
}

/// The move that the command was about: named by the refusal, or in flight for whom it asked.
fn move_words(state: &State, body: &Rejected) -> Option<String> {
    let of = |asked: &ledger::event::Asked| state.moves().live_of_instance(asked.consumer).next();
    let named = body.move_id.and_then(|id| state.moves().get(id));
    let this = &named.or_else(|| body.asked.iter().find_map(of))?.this;
    let (kind, instance, attempt) = (kind_word(this.kind), this.instance, this.attempt);
    Some(format!(
        "the {kind} of instance {instance}, move {}, attempt {attempt}, {}",
        this.id,
        state_words(this.state)
    ))
}

fn shortage_report(
    state: &State,
    body: &Rejected,
    shortage: &Shortage,
    now: Timestamp,
    names: &Names,
) -> ShortageReport {
    let wants = |holding: &Holding| {
        holding
            .get(&shortage.provider)
            .and_then(|resources| resources.get(&shortage.class))
            .copied()
    };
    let asked: u64 =
        body.asked.iter().filter_map(|asked| wants(&asked.holding)).map(u64::from).sum();
    let account = Account::of(state, shortage.provider, &shortage.class);
    let short_by = i128::from(shortage.needed) - i128::from(shortage.free);
    ShortageReport {
        provider: shortage.provider,
        provider_name: account.as_ref().map_or_else(
            || names.provider(shortage.provider),
            |account| account.provider_name.clone(),
        ),
        class: shortage.class.clone(),
        // What was asked may not have fitted into the record; then the need is all there is.
        asked: if asked == 0 { shortage.needed } else { asked },
        needed: shortage.needed,
        free: shortage.free,
        short_by: (shortage.cause == ShortageCause::Capacity).then_some(short_by),
        cause: shortage.cause,
        account,
        holders: Holders::of(state, shortage.provider, &shortage.class, now),
    }
}

impl ShortageReport {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let class = &self.class;
        let units = |value: i128| amount(class, value);
        writeln!(out, "  {class} on {} ({})", self.provider_name, self.provider)?;
        write!(out, "    asked    {}", units(self.asked.into()))?;
        if self.asked != self.needed {
            write!(out, ", in all {} were needed", units(self.needed.into()))?;
        }
        writeln!(out)?;
        match self.cause {
            ShortageCause::Capacity => {}
            ShortageCause::Retiring => {
                writeln!(out, "    it goes once it is free, and no more of it can be claimed")?;
                return self.write_holders(out);
            }
            ShortageCause::NoInventory => return writeln!(out, "    there is no inventory of it"),
            ShortageCause::MinUnit(limit) => {
                return writeln!(out, "    that is below min_unit {limit}");
            }
            ShortageCause::MaxUnit(limit) => {
                return writeln!(out, "    that is above max_unit {limit}");
            }
            ShortageCause::StepSize(step) => {
                return writeln!(out, "    that is no multiple of step_size {step}");
            }
        }
        if let Some(account) = &self.account {
            writeln!(out, "    capacity {}", account.capacity_words())?;
            let (held, free) = (units(account.held.into()), units(account.free()));
            write!(out, "    held     {held}, free {free}")?;
            if account.free() != i128::from(self.free) {
                // It replaces or overlaps some of what is held, or is one of a list.
                write!(out, " ({} for this command)", units(self.free.into()))?;
            }
            writeln!(out)?;
        }
        if let Some(short) = self.short_by {
            writeln!(out, "    short by {}", units(short))?;
        }
        self.write_holders(out)
    }

    fn write_holders(&self, out: &mut dyn Write) -> io::Result<()> {
        for holder in &self.holders.biggest {
            let held = amount(&self.class, holder.amount.into());
            write!(out, "    held by  {} {}: {held}", holder.role.word(), holder.consumer)?;
            if let Some(purpose) = &holder.purpose {
                write!(out, ", {purpose}")?;
            }
            writeln!(out, "{}", if holder.overlap_max { " (overlap: max)" } else { "" })?;
        }
        if self.holders.others > 0 {
            let held = amount(&self.class, self.holders.others_amount.into());
            writeln!(out, "    held by  {} others: {held} together", self.holders.others)?;
        }
        Ok(())
    }
}
