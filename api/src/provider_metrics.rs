//! What each provider has and what is held of it, by class, in Prometheus' text form.

use std::fmt::Write;

use ledger::amounts::Inventory;
use ledger::state::{Provider, ProviderInventory, State};
use projector::usage::HeldByMoves;

/// The most rows (a class of a provider each) in one answer: some 65 MB of text.
const ROWS: usize = 100_000;

/// One row's labels and figures.
struct Row {
    labels: String,
    inventory: Inventory,
    used: u64,
    held_by_moves: u64,
}

/// Writes the figures of all providers, all true at the state's sequence.
pub fn write(out: &mut String, state: &State) {
    write_rows(out, state, ROWS);
}

fn write_rows(out: &mut String, state: &State, most: usize) {
    let by_moves = HeldByMoves::of(state);
    let all = || {
        let providers = state.providers().map(|(_, provider)| provider);
        providers
            .flat_map(|provider| provider.inventories.iter().map(move |row| (&**provider, row)))
    };
    let rows: Vec<Row> = all().take(most).map(|it| row(state, &by_moves, it)).collect();
    // A metric's samples have to stand together. Writing to a string cannot fail, here and below.
    metric(out, &rows, "total", "What there is.", |row| f64::from(row.inventory.total));
    metric(out, &rows, "reserved", "What of it is set apart.", |row| {
        f64::from(row.inventory.reserved)
    });
    metric(out, &rows, "allocation_ratio", "By what the rest may be overcommitted.", |row| {
        row.inventory.allocation_ratio
    });
    // Amounts stay far below 2^53.
    metric(out, &rows, "used", "What is held, both sides of a linked move once.", |row| {
        row.used as f64
    });
    metric(out, &rows, "held_by_moves", "What of it goes once all moves are confirmed.", |row| {
        row.held_by_moves as f64
    });
    const LEFT_OUT: &str = "allocd_provider_rows_left_out";
    let _ = writeln!(out, "# HELP {LEFT_OUT} Classes of providers beyond what one answer shows.");
    let _ = writeln!(out, "# TYPE {LEFT_OUT} gauge\n{LEFT_OUT} {}", all().count() - rows.len());
}

fn row(
    state: &State,
    by_moves: &HeldByMoves,
    (provider, row): (&Provider, &ProviderInventory),
) -> Row {
    let labels = format!(
        "provider=\"{}\",name=\"{}\",class=\"{}\"",
        provider.uuid,
        escaped(&provider.name),
        state.classes().name(row.class)
    );
    let held_by_moves = by_moves.amount(provider.uuid, row.class);
    Row { labels, inventory: row.inventory, used: row.held, held_by_moves }
}

fn metric(out: &mut String, rows: &[Row], name: &str, help: &str, figure: impl Fn(&Row) -> f64) {
    let _ = writeln!(out, "# HELP allocd_provider_{name} {help}");
    let _ = writeln!(out, "# TYPE allocd_provider_{name} gauge");
    for row in rows {
        let _ = writeln!(out, "allocd_provider_{name}{{{}}} {}", row.labels, figure(row));
    }
}

/// A label's value: a provider's name may be any text.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
        assert_eq!(escaped("host-1.example"), "host-1.example");
    }

    #[test]
    fn an_empty_cloud_has_every_metric_and_no_row() {
        let mut out = String::new();
        write_rows(&mut out, &State::default(), 10);
        assert!(out.contains("# TYPE allocd_provider_total gauge\n#"), "{out}");
        assert!(out.ends_with("allocd_provider_rows_left_out 0\n"), "{out}");
    }
}
