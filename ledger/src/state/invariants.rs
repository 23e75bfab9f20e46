//! What must be true of every state. `replay verify` and the property tests ask.

use super::State;
use super::held::held_from_holders;

impl State {
    /// Checks that the kept figures are what the holders add up to, and that every number leads
    /// where it should.
    ///
    /// # Errors
    /// A sentence for each thing that is wrong (100 at most).
    pub fn check_invariants(&self) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        self.check_usages(&mut wrong);
        self.check_consumers(&mut wrong);
        self.check_links(&mut wrong);
        self.check_quotas(&mut wrong);
        wrong.truncate(100);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn check_usages(&self, wrong: &mut Vec<String>) {
        for (id, provider) in self.providers() {
            for inventory in &provider.inventories {
                let counted = held_from_holders(self, id, inventory.class);
                if counted != inventory.held {
                    wrong.push(format!(
                        "provider {} class {}: {} is on record as held, its holders have {counted}",
                        provider.uuid,
                        self.classes().name(inventory.class),
                        inventory.held
                    ));
                }
            }
        }
    }

    fn check_consumers(&self, wrong: &mut Vec<String>) {
        for (_, consumer) in self.consumers() {
            if consumer.allocations.is_empty() {
                wrong.push(format!("consumer {} exists and holds nothing", consumer.uuid));
            }
            for held in &consumer.allocations {
                let has = self
                    .provider_row(held.provider)
                    .is_some_and(|row| row.inventory(held.class).is_some());
                if !has {
                    wrong.push(format!("consumer {} holds what no provider has", consumer.uuid));
                }
                if held.amount == 0 {
                    wrong.push(format!("consumer {} holds 0 of something", consumer.uuid));
                }
            }
        }
    }

    fn check_links(&self, wrong: &mut Vec<String>) {
        for (id, group) in &self.links {
            for member in &group.members {
                if self.consumer(*member).and_then(|row| row.link) != Some(*id) {
                    wrong
                        .push(format!("consumer {member} is listed in link {id} and is not in it"));
                }
            }
        }
    }
}
