//! What moves in flight hold, for explanations: room that looks taken for good may be back soon.

use ledger::amounts::Holding;
use ledger::ids::{MoveId, ProviderUuid};
use ledger::state::{MoveEntry, ProviderId, State};
use projector::UsageView;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The most moves named in one place; the oldest are, since these are the likeliest leaks.
const NAMED: usize = 16;
/// The most moves described in one answer.
const DESCRIBED: usize = 256;

/// The live moves of a state, and the figures of what goes once they are confirmed.
pub(super) struct InFlight<'a> {
    state: &'a State,
    usage: &'a UsageView,
    /// Oldest first.
    live: Vec<&'a MoveEntry>,
    /// Numbers in `live` of those that were named.
    named: BTreeSet<usize>,
}

impl<'a> InFlight<'a> {
    /// The moves are those of the state; the figures may be some events older or younger, and
    /// [`Self::told`] says as of when they are true.
    pub(super) fn new(state: &'a State, usage: &'a UsageView) -> Self {
        let moves = state.moves().iter().map(|entry| &**entry);
        let mut live: Vec<&MoveEntry> = moves.filter(|entry| entry.this.state.is_live()).collect();
        live.sort_unstable_by_key(|entry| (entry.opened_sequence, entry.this.id));
        Self { state, usage, live, named: BTreeSet::new() }
    }

    /// What moves hold of a class on all providers together, and which moves these are.
    pub(super) fn of_class(&mut self, class: &str) -> (u64, Vec<MoveId>) {
        let number = self.usage.classes().number(class);
        let usages = self.usage.providers().filter_map(|(_, usage)| usage.class(number?));
        let held = usages.map(|usage| usage.held_by_moves).sum();
        let has =
            |holding: &Holding| holding.values().any(|resources| resources.contains_key(class));
        (held, self.name(has))
    }

    /// What moves hold on a provider and all below it, by class, and which moves these are.
    pub(super) fn on_tree(&mut self, top: ProviderId) -> (Map<String, Value>, Vec<MoveId>) {
        let rows = self.state.subtree(top).into_iter();
        let tree: Vec<ProviderUuid> =
            rows.filter_map(|id| Some(self.state.provider_row(id)?.uuid)).collect();
        let mut held: Map<String, Value> = Map::new();
        for usage in tree.iter().filter_map(|uuid| self.usage.provider(*uuid)) {
            for class in usage.classes.iter().filter(|class| class.held_by_moves > 0) {
                let name = self.usage.classes().name(class.class).to_string();
                let before = held.get(&name).and_then(Value::as_u64).unwrap_or(0);
                held.insert(name, before.saturating_add(class.held_by_moves).into());
            }
        }
        let has = |holding: &Holding| tree.iter().any(|uuid| holding.contains_key(uuid));
        (held, self.name(has))
    }

    /// The ids of the first moves of which either side has it.
    fn name(&mut self, has: impl Fn(&Holding) -> bool) -> Vec<MoveId> {
        let holds = |entry: &MoveEntry| has(&entry.this.source) || has(&entry.this.destination);
        let found = self.live.iter().enumerate().filter(|(_, entry)| holds(entry)).take(NAMED);
        let numbers: Vec<usize> = found.map(|(number, _)| number).collect();
        self.named.extend(&numbers);
        numbers.into_iter().map(|number| self.live[number].this.id).collect()
    }

    /// The moves that were named, each described once, and as of when the figures are true.
    pub(super) fn told(self) -> Value {
        let named = self.named.iter().take(DESCRIBED);
        let moves: Vec<Value> = named.map(|number| described(self.live[*number])).collect();
        json!({
            "live": self.live.len(),
            "held_as_of": self.usage.as_of().to_string(),
            "held_as_of_sequence": projector::Projection::sequence(self.usage),
            "moves": moves,
        })
    }
}

fn described(entry: &MoveEntry) -> Value {
    let this = &entry.this;
    json!({
        "id": this.id,
        "kind": this.kind,
        "state": this.state.name(),
        "instance": this.instance,
        "migration": this.migration,
        "request_id": this.request_id,
        "opened_at": entry.opened_at.to_string(),
        "opened_sequence": entry.opened_sequence,
        "source": this.source,
        "destination": this.destination,
    })
}
