//! The index as lines, one fact each, to compare two of them: one that followed the ledger must
//! equal one made from the state. All is read from the index's own sets and columns.

use super::index::CandidateIndex;
use ledger::state::ProviderId;
use roaring::RoaringBitmap;

impl CandidateIndex {
    /// Everything in the index, one fact a line, in an order that depends on the facts alone.
    pub fn facts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.tree_facts(&mut lines);
        self.class_facts(&mut lines);
        self.set_facts(&mut lines);
        lines.sort_unstable();
        lines.insert(0, format!("candidates as of event {}", self.sequence()));
        lines
    }

    fn tree_facts(&self, lines: &mut Vec<String>) {
        let trees = self.trees();
        for root in trees.roots() {
            for &member in trees.members(&root) {
                let parent = trees.parent(member).map(|id| self.spell(id));
                let (root, member) = (self.spell(trees.root(member)), self.spell(member));
                lines.push(format!("provider {member}: root {root} parent {parent:?}"));
            }
        }
    }

    fn class_facts(&self, lines: &mut Vec<String>) {
        for (class, column) in self.classes() {
            let name = self.state().classes().name(class);
            for provider in column.providers() {
                let (min, step) = column.rules(provider);
                lines.push(format!(
                    "class {name} on {}: room {} min {min} step {step}",
                    self.spell(provider),
                    column.room(provider)
                ));
            }
        }
    }

    fn set_facts(&self, lines: &mut Vec<String>) {
        for (number, set) in self.trait_sets().filter(|(_, set)| !set.is_empty()) {
            let name = self.state().traits().name(number);
            lines.push(format!("trait {name}: {:?}", self.spell_all(set)));
        }
        for (number, set) in self.aggregate_sets().filter(|(_, set)| !set.is_empty()) {
            let name = self.state().aggregates().name(number);
            let lenders: RoaringBitmap = self.sharers(number).iter().copied().collect();
            let (members, lenders) = (self.spell_all(set), self.spell_all(&lenders));
            lines.push(format!("aggregate {name}: {members:?} lent to by {lenders:?}"));
        }
    }

    fn spell(&self, id: ProviderId) -> String {
        match self.row(id) {
            Some(row) => row.uuid.to_string(),
            None => format!("number {id}, which is free"),
        }
    }

    fn spell_all(&self, set: &RoaringBitmap) -> Vec<String> {
        let mut names: Vec<String> = set.iter().map(|id| self.spell(id)).collect();
        names.sort_unstable();
        names
    }
}
