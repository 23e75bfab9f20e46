//! Texts of providers for answers to candidate queries, made once and kept until the provider
//! changes.
//!
//! The summaries are most of the bytes of such an answer, and from one answer to the next few of
//! them differ. So a text is kept beside the row it was made of. A row that somebody holds is
//! never changed in place (the state copies it first), so the same row, by its address, has the
//! same text; nothing has to be told of changes, and the writer does nothing for it.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use ledger::state::{Provider, ProviderId, State, Vocabulary};

/// What is kept from answer to answer. It holds at most one text of each provider.
#[derive(Default)]
pub struct Summaries {
    texts: ArcSwap<Texts>,
}

/// The texts made with one set of class names.
#[derive(Default)]
pub struct Texts {
    /// Only custom classes can be renamed, and rarely: then all texts are made anew.
    classes: Vocabulary,
    by_number: Box<[ArcSwapOption<Text>]>,
}

/// The text of one row.
struct Text {
    row: Arc<Provider>,
    json: Box<str>,
}

impl Summaries {
    /// How many bytes the texts take.
    pub fn bytes(&self) -> u64 {
        let texts = self.texts.load();
        let slots = texts.by_number.iter();
        let text = |slot: &ArcSwapOption<Text>| slot.load().as_ref().map_or(0, |it| it.json.len());
        slots.map(|slot| (size_of_val(slot) + text(slot)) as u64).sum()
    }

    /// The texts that go with a state.
    pub fn of(&self, state: &State) -> Arc<Texts> {
        let texts = self.texts.load();
        if texts.suits(state) {
            return Arc::clone(&texts);
        }
        let fresh = Arc::new(Texts::new(state));
        self.texts.store(Arc::clone(&fresh));
        fresh
    }
}

impl Texts {
    fn new(state: &State) -> Self {
        // Room for growth: each time it runs out all texts are made anew.
        let numbers = (state.provider_numbers() + 1).next_power_of_two().max(64);
        Self {
            classes: state.classes().clone(),
            by_number: (0..numbers).map(|_| ArcSwapOption::empty()).collect(),
        }
    }

    fn suits(&self, state: &State) -> bool {
        state.provider_numbers() < self.by_number.len()
            && self.classes.has_the_names_of(state.classes())
    }

    /// Adds the text of a provider, which `make` gives if it is not at hand.
    pub fn push(
        &self,
        out: &mut Vec<u8>,
        id: ProviderId,
        row: &Arc<Provider>,
        make: impl FnOnce() -> String,
    ) {
        let Some(slot) = self.by_number.get(id as usize) else {
            return out.extend_from_slice(make().as_bytes());
        };
        let kept = slot.load();
        if let Some(text) = kept.as_ref().filter(|text| Arc::ptr_eq(&text.row, row)) {
            return out.extend_from_slice(text.json.as_bytes());
        }
        let json = make().into_boxed_str();
        out.extend_from_slice(json.as_bytes());
        slot.store(Some(Arc::new(Text { row: Arc::clone(row), json })));
    }
}

impl std::fmt::Debug for Summaries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summaries").field("room", &self.texts.load().by_number.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::ids::ProviderUuid;
    use ledger::time::Timestamp;
    use uuid::Uuid;

    fn row(generation: u32) -> Arc<Provider> {
        Arc::new(Provider {
            uuid: ProviderUuid(Uuid::from_u128(1)),
            name: "host".into(),
            generation,
            parent: None,
            root: 0,
            created_at: Timestamp::from_micros(0),
            updated_at: None,
            inventories: Vec::new(),
            traits: Arc::default(),
            retiring: false,
            aggregates: Arc::default(),
        })
    }

    /// What is written for `row`, and whether it had to be made.
    fn pushed(texts: &Texts, row: &Arc<Provider>) -> (String, bool) {
        let (mut out, mut made) = (b"before ".to_vec(), false);
        texts.push(&mut out, 0, row, || {
            made = true;
            row.generation.to_string()
        });
        (String::from_utf8(out).expect("text"), made)
    }

    #[test]
    fn a_text_is_made_once_for_each_row() {
        let texts = Summaries::default().of(&State::default());
        let (first, second) = (row(1), row(2));
        assert_eq!(pushed(&texts, &first), ("before 1".into(), true));
        assert_eq!(pushed(&texts, &first), ("before 1".into(), false));
        assert_eq!(pushed(&texts, &second), ("before 2".into(), true));
        assert_eq!(pushed(&texts, &first), ("before 1".into(), true));
    }

    #[test]
    fn the_texts_of_a_state_are_the_same_until_it_outgrows_them() {
        let summaries = Summaries::default();
        let state = State::default();
        let texts = summaries.of(&state);
        assert!(Arc::ptr_eq(&texts, &summaries.of(&state)));
        assert!(texts.by_number.len() >= 64);
    }
}
