//! `note_failed_search`: a search for candidates that found nothing goes on record, because it is
//! how most resizes fail. It changes nothing that decisions depend on. How often this may be is
//! for the caller to bound; how large the record is, is bounded here.

use super::Decision;
use crate::decide::{Draft, too_large};
use crate::event::{Event, SearchFailed};
use crate::limits::{CONDITION_BYTES, NAME_CHARS, QUERY_BYTES, SEARCH_STEPS, SEARCHED_GROUPS};

pub(super) fn decide(draft: &mut Draft<'_>, search: &SearchFailed) -> Decision {
    let steps = search.groups.iter().map(|group| group.steps.len()).sum();
    let conditions = search.groups.iter().flat_map(|group| &group.steps);
    let texts = conditions
        .map(|step| &step.condition)
        .chain(search.groups.iter().map(|group| &group.suffix))
        .map(String::len);
    let bounds = [
        ("bytes of the query", search.query.len(), QUERY_BYTES),
        ("characters of the project", search.project_id.chars().count(), NAME_CHARS),
        ("groups", search.groups.len(), SEARCHED_GROUPS),
        ("conditions", steps, SEARCH_STEPS),
        ("bytes of a condition", texts.max().unwrap_or(0), CONDITION_BYTES),
    ];
    for (what, size, limit) in bounds {
        if size > limit {
            return Err(too_large(what, limit));
        }
    }
    draft.emit(Event::SearchFailed(search.clone()));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::commands::testing::*;
    use crate::event::{SearchStep, SearchedGroup};
    use crate::refusal::Cause;

    fn search(query: &str, steps: usize) -> SearchFailed {
        let step = SearchStep { condition: "VCPU:4".into(), left: 0 };
        let steps = vec![step; steps];
        SearchFailed {
            project_id: "p".into(),
            query: query.into(),
            query_cut: false,
            searched_at: 1,
            groups: vec![SearchedGroup { suffix: String::new(), considered: 5, steps }],
        }
    }

    #[test]
    fn a_search_that_found_nothing_goes_on_record_and_changes_nothing_else() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        let decided = world.ok(Command::NoteFailedSearch(search("resources=VCPU:9", 1)));
        assert_eq!(decided.events, [Event::SearchFailed(search("resources=VCPU:9", 1))]);
    }

    #[test]
    fn a_record_of_a_search_is_bounded() {
        let mut world = World::new();
        let long = "x".repeat(QUERY_BYTES + 1);
        for search in [search(&long, 1), search("resources=VCPU:9", SEARCH_STEPS + 1)] {
            let refusal = world.refused(Command::NoteFailedSearch(search));
            assert!(matches!(refusal.cause, Cause::TooLarge { .. }));
        }
    }

    #[test]
    fn nobody_can_send_it() {
        let note = Command::NoteFailedSearch(search("resources=VCPU:9", 1));
        let json = serde_json::to_string(&note).expect("JSON");
        assert!(serde_json::from_str::<Command>(&json).is_err());
        let packed = rmp_serde::to_vec_named(&note).expect("MessagePack");
        assert!(rmp_serde::from_slice::<Command>(&packed).is_err());
    }
}
