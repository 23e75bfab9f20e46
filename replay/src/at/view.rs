//! What `replay at` shows: gathered once, then written for people or as JSON.

use super::{cut_words, sum_of_allocations};
use crate::cli::AtArgs;
use crate::error::Error;
use crate::open::Source;
use crate::roles::{self, Role, kind_word};
use crate::shown::shown;
use crate::table::Table;
use crate::units;
use crate::words::{joined, resources_words, state_words};
use anstyle::Style;
use ledger::amounts::Holding;
use ledger::ids::{ConsumerUuid, MoveId, ProviderUuid};
use ledger::state::{Consumer, MoveEntry, Provider, ProviderId, State};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// The state at one sequence, or the parts of it that were asked for.
#[derive(Serialize)]
pub(super) struct View {
    ledger: String,
    /// What was asked for ...
    asked_sequence: u64,
    /// ... by a time that has not come yet: the newest state is shown ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_to_come: Option<String>,
    /// ... and the state shown, which holds whole groups only.
    sequence: u64,
    recorded_at: String,
    head: u64,
    durable: bool,
    durable_sequence: u64,
    state_digest: String,
    provider_count: usize,
    consumer_count: usize,
    move_count: usize,
    providers: Vec<ProviderView>,
    consumers: Vec<ConsumerView>,
    moves: Vec<MoveView>,
    /// Ids that were asked for and that the state does not have.
    not_there: Vec<String>,
    /// Everything was asked for, not some things by their id.
    #[serde(skip)]
    all: bool,
    #[serde(skip)]
    names: HashMap<ProviderUuid, Arc<str>>,
}

#[derive(Serialize)]
struct ProviderView {
    uuid: ProviderUuid,
    name: String,
    generation: u32,
    parent: Option<ProviderUuid>,
    /// It goes once it is free.
    retiring: bool,
    traits: Vec<String>,
    aggregates: Vec<String>,
    inventories: Vec<InventoryView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holders: Vec<ConsumerView>,
}

#[derive(Serialize)]
struct InventoryView {
    class: String,
    total: u32,
    reserved: u32,
    allocation_ratio: f64,
    capacity: i64,
    held: u64,
    free: i64,
    allocated: u64,
    /// It goes once it is free.
    retiring: bool,
}

#[derive(Serialize)]
struct ConsumerView {
    uuid: ConsumerUuid,
    role: Role,
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    move_id: Option<MoveId>,
    generation: u32,
    project_id: String,
    user_id: String,
    consumer_type: Option<String>,
    created_at: String,
    updated_at: String,
    allocations: Holding,
    linked: bool,
}

#[derive(Serialize)]
struct MoveView {
    #[serde(rename = "move")]
    this: ledger::event::Move,
    opened_at: String,
    opened_sequence: u64,
    changed_at: String,
    changed_sequence: u64,
    age: String,
}

impl View {
    /// Gathers what was asked for.
    pub fn of(args: &AtArgs, source: &Source, state: &State, asked: u64) -> Result<Self, Error> {
        let limit = if args.limit == 0 { usize::MAX } else { args.limit };
        let all = args.provider.is_none() && args.consumer.is_none() && args.move_id.is_none();
        let position = state.position();
        let mut view = Self {
            ledger: position.ledger_id.to_string(),
            asked_sequence: asked,
            still_to_come: None,
            sequence: position.sequence,
            recorded_at: position.recorded_at.to_string(),
            head: source.head.sequence,
            durable: position.sequence <= source.durable(),
            durable_sequence: source.durable(),
            state_digest: state.digest().to_string(),
            provider_count: state.provider_count(),
            consumer_count: state.consumer_count(),
            move_count: state.moves().len(),
            providers: Vec::new(),
            consumers: Vec::new(),
            moves: Vec::new(),
            not_there: Vec::new(),
            all,
            names: HashMap::new(),
        };
        if all {
            view.add_all(state, limit);
        } else {
            view.add_asked(args, state, limit);
        }
        view.name_providers(state);
        Ok(view)
    }

    fn add_all(&mut self, state: &State, limit: usize) {
        self.providers =
            state.providers().take(limit).map(|(id, row)| provider_view(state, id, row)).collect();
        self.consumers =
            state.consumers().take(limit).map(|(_, row)| consumer_view(state, row)).collect();
        let mut moves: Vec<_> = state.moves().iter().collect();
        // Live ones first, latest first.
        moves.sort_by_key(|entry| {
            (
                !entry.this.state.is_live(),
                std::cmp::Reverse((entry.changed_sequence, entry.this.id)),
            )
        });
        self.moves = moves.into_iter().take(limit).map(|entry| move_view(state, entry)).collect();
    }

    fn add_asked(&mut self, args: &AtArgs, state: &State, limit: usize) {
        if let Some(uuid) = args.provider {
            match state.provider_id(uuid).and_then(|id| Some((id, state.provider_row(id)?))) {
                Some((id, row)) => {
                    let mut view = provider_view(state, id, row);
                    view.holders = state
                        .holders(id)
                        .take(limit)
                        .map(|row| consumer_view(state, row))
                        .collect();
                    self.providers.push(view);
                }
                None => self.not_there.push(format!("provider {uuid}")),
            }
        }
        if let Some(uuid) = args.consumer {
            match state.consumer(uuid) {
                Some(row) => self.consumers.push(consumer_view(state, row)),
                None => self.not_there.push(format!("consumer {uuid} (it holds nothing)")),
            }
            self.moves
                .extend(state.moves().of(uuid).take(limit).map(|entry| move_view(state, entry)));
        }
        if let Some(id) = args.move_id {
            match state.moves().get(id) {
                Some(entry) => self.moves.push(move_view(state, entry)),
                None => self.not_there.push(format!("move {id}")),
            }
        }
    }

    fn name_providers(&mut self, state: &State) {
        let holders = self.providers.iter().flat_map(|provider| &provider.holders);
        let held = self.consumers.iter().chain(holders).map(|consumer| &consumer.allocations);
        let moved =
            self.moves.iter().flat_map(|entry| [&entry.this.source, &entry.this.destination]);
        let named = held.chain(moved).flat_map(|holding| holding.keys().copied());
        self.names =
            named.filter_map(|id| Some((id, Arc::clone(&state.provider(id)?.name)))).collect();
    }

    /// Writes it for people.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let bold = Style::new().bold();
        writeln!(
            out,
            "{bold}Event {} of {}{bold:#}, recorded {}, ledger {}",
            self.sequence, self.head, self.recorded_at, self.ledger
        )?;
        if let Some(time) = &self.still_to_come {
            writeln!(out, "{time} is still to come: this is the state after the newest event.")?;
        }
        if self.asked_sequence != self.sequence {
            let asked = self.asked_sequence;
            writeln!(
                out,
                "Event {asked} is in the middle of a group: this is the state before it."
            )?;
        }
        if !self.durable {
            let durable = self.durable_sequence;
            writeln!(out, "Not yet durable: the server has acknowledged events up to {durable}.")?;
        }
        writeln!(out, "State digest {}", self.state_digest)?;
        for missing in &self.not_there {
            writeln!(out, "Not there: {missing}")?;
        }
        self.write_providers(out)?;
        self.write_consumers(out)?;
        self.write_moves(out)
    }

    fn write_providers(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.providers.is_empty() {
            return Ok(());
        }
        self.heading(out, "Providers", self.providers.len(), self.provider_count)?;
        for provider in &self.providers {
            provider.write(out, self)?;
        }
        Ok(())
    }

    fn write_consumers(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.consumers.is_empty() {
            return Ok(());
        }
        self.heading(out, "Consumers", self.consumers.len(), self.consumer_count)?;
        self.consumers.iter().try_for_each(|consumer| consumer.write(out, self, 2))
    }

    fn write_moves(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.moves.is_empty() {
            return Ok(());
        }
        self.heading(out, "Moves", self.moves.len(), self.move_count)?;
        self.moves.iter().try_for_each(|entry| entry.write(out, self))
    }

    fn heading(&self, out: &mut dyn Write, what: &str, shown: usize, all: usize) -> io::Result<()> {
        let bold = Style::new().bold();
        let count = if self.all { cut_words(shown, all) } else { shown.to_string() };
        writeln!(out, "\n{bold}{what}{bold:#} ({count})")
    }

    fn holding(&self, holding: &Holding) -> String {
        if holding.is_empty() {
            return "nothing".into();
        }
        let name = |id: &ProviderUuid| {
            self.names.get(id).map_or_else(|| id.to_string(), ToString::to_string)
        };
        joined(
            holding.iter().map(|(id, held)| format!("{} {}", name(id), resources_words(held))),
            ", ",
        )
    }
}

impl ProviderView {
    fn write(&self, out: &mut dyn Write, view: &View) -> io::Result<()> {
        let parent = self.parent.map(|parent| format!(", parent {parent}")).unwrap_or_default();
        writeln!(out, "  {} ({}) generation {}{parent}", self.name, self.uuid, self.generation)?;
        if self.retiring {
            writeln!(out, "    goes once it is free")?;
        }
        let classes = self.inventories.iter().filter(|row| row.retiring).map(|row| &*row.class);
        let classes: Vec<&str> = classes.collect();
        if !classes.is_empty() {
            writeln!(out, "    goes once it is free: {}", classes.join(", "))?;
        }
        if !self.traits.is_empty() {
            writeln!(out, "    traits {}", self.traits.join(" "))?;
        }
        if !self.aggregates.is_empty() {
            writeln!(out, "    aggregates {}", self.aggregates.join(" "))?;
        }
        self.table().write(out, 4)?;
        if !self.holders.is_empty() {
            writeln!(out, "    held by")?;
        }
        self.holders.iter().try_for_each(|holder| holder.write(out, view, 6))
    }

    fn table(&self) -> Table {
        let titles = [
            "class",
            "total",
            "reserved",
            "ratio",
            "capacity",
            "held",
            "free",
            "unit",
            "allocated",
        ];
        let mut table =
            Table::new(&titles, &[false, true, true, true, true, true, true, false, true]);
        for row in &self.inventories {
            // Where a move stays on its provider, allocations add up to more than is held.
            let allocated =
                if row.allocated == row.held { String::new() } else { row.allocated.to_string() };
            table.row(vec![
                row.class.clone(),
                row.total.to_string(),
                row.reserved.to_string(),
                units::ratio(row.allocation_ratio),
                row.capacity.to_string(),
                row.held.to_string(),
                row.free.to_string(),
                units::unit(&row.class).to_owned(),
                allocated,
            ]);
        }
        table
    }
}

impl ConsumerView {
    fn write(&self, out: &mut dyn Write, view: &View, indent: usize) -> io::Result<()> {
        let mut more =
            vec![format!("generation {}", self.generation), format!("project {}", self.project_id)];
        more.extend(self.consumer_type.as_ref().map(|name| format!("type {name}")));
        more.extend(self.move_id.map(|id| format!("move {id}")));
        if self.linked {
            more.push("overlap: max".into());
        }
        let (role, uuid, held) = (self.role.word(), self.uuid, view.holding(&self.allocations));
        writeln!(out, "{:indent$}{role} {uuid}: {held} | {}", "", more.join(", "))
    }
}

impl MoveView {
    fn write(&self, out: &mut dyn Write, view: &View) -> io::Result<()> {
        let this = &self.this;
        let inferred = if this.inferred { ", inferred" } else { "" };
        let kind = kind_word(this.kind);
        writeln!(
            out,
            "  {kind} {} attempt {}{inferred}: {}",
            this.id,
            this.attempt,
            state_words(this.state)
        )?;
        let migration = this.migration.map_or("none".to_owned(), |id| id.to_string());
        writeln!(out, "    instance {}, migration {migration}", this.instance)?;
        writeln!(out, "    source {}", view.holding(&this.source))?;
        writeln!(out, "    destination {}", view.holding(&this.destination))?;
        let age = if this.state.is_live() { "under way for" } else { "ended after" };
        writeln!(
            out,
            "    opened {} (event {}), last changed {} (event {}), {age} {}",
            self.opened_at, self.opened_sequence, self.changed_at, self.changed_sequence, self.age
        )
    }
}

fn provider_view(state: &State, id: ProviderId, row: &Provider) -> ProviderView {
    let inventories = row.inventories.iter().map(|inventory| {
        let capacity = inventory.inventory.capacity_shown();
        InventoryView {
            class: state.classes().name(inventory.class).to_string(),
            total: inventory.inventory.total,
            reserved: inventory.inventory.reserved,
            allocation_ratio: inventory.inventory.allocation_ratio,
            capacity,
            held: inventory.held,
            free: inventory.free(),
            allocated: sum_of_allocations(state, id, inventory.class),
            retiring: inventory.retiring,
        }
    });
    ProviderView {
        uuid: row.uuid,
        name: shown(&row.name),
        generation: row.generation,
        parent: row.parent.and_then(|parent| state.provider_row(parent)).map(|parent| parent.uuid),
        retiring: row.retiring,
        traits: row.traits.iter().map(|&id| state.traits().name(id).to_string()).collect(),
        aggregates: row.aggregates.iter().map(|&id| shown(state.aggregates().name(id))).collect(),
        inventories: inventories.collect(),
        holders: Vec::new(),
    }
}

fn consumer_view(state: &State, row: &Consumer) -> ConsumerView {
    let (role, entry) = roles::role(state, row.uuid);
    ConsumerView {
        uuid: row.uuid,
        role,
        move_id: entry.map(|entry| entry.this.id),
        generation: row.generation,
        project_id: shown(state.projects().name(row.project)),
        user_id: shown(state.users().name(row.user)),
        consumer_type: row
            .consumer_type
            .map(|number| state.consumer_types().name(number).to_string()),
        created_at: row.created_at.to_string(),
        updated_at: row.updated_at.to_string(),
        allocations: state.holding(&row.allocations),
        linked: row.link.is_some(),
    }
}

fn move_view(state: &State, entry: &MoveEntry) -> MoveView {
    let until =
        if entry.this.state.is_live() { state.position().recorded_at } else { entry.changed_at };
    MoveView {
        this: entry.this.clone(),
        opened_at: entry.opened_at.to_string(),
        opened_sequence: entry.opened_sequence,
        changed_at: entry.changed_at.to_string(),
        changed_sequence: entry.changed_sequence,
        age: units::span(entry.opened_at, until),
    }
}
