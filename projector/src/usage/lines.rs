//! The usage view as lines, to compare two of them.

use super::UsageView;
use crate::Projection;

pub(super) fn lines(view: &UsageView) -> Vec<String> {
    let mut lines = vec![format!("usage as of event {} at {}", view.sequence(), view.as_of)];
    let mut providers: Vec<_> = view.providers.iter().collect();
    providers.sort_unstable_by_key(|(uuid, _)| **uuid);
    for (uuid, row) in providers {
        lines.push(format!("provider {uuid} generation {}", row.generation));
        for usage in &row.classes {
            let i = &usage.inventory;
            lines.push(format!(
                "provider {uuid} {}: total {} reserved {} ratio {} held {} of these by moves {}",
                view.classes.name(usage.class),
                i.total,
                i.reserved,
                i.allocation_ratio,
                usage.held,
                usage.held_by_moves
            ));
        }
    }
    let mut totals: Vec<String> = view
        .totals
        .sums
        .iter()
        .map(|(key, sum)| {
            let named: std::collections::BTreeMap<_, _> = sum
                .amounts
                .iter()
                .map(|(&class, &amount)| (view.classes.name(class), amount))
                .collect();
            format!(
                "project {} user {} type {:?}: {} consumers hold {named:?}",
                view.totals.projects.name(key.0),
                view.totals.users.name(key.1),
                view.totals.type_name(*key),
                sum.consumers
            )
        })
        .collect();
    for (project, user) in view.totals.sums.keys().map(|key| (key.0, key.1)) {
        let (project, user) = (view.totals.projects.name(project), view.totals.users.name(user));
        let of_moves = view.held_by_moves_of(Some(project), Some(user));
        totals.push(format!("project {project} user {user}: of these by moves {of_moves:?}"));
    }
    totals.sort_unstable();
    totals.dedup();
    lines.extend(totals);
    lines
}
