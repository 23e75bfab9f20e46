//! Where the process's memory is, for `/metrics`: each holder that is bounded by bytes, and the
//! whole.

use std::fmt::Write;

use ledger::memory::Part;

use crate::app::App;

/// Writes what each part holds.
pub fn write(out: &mut String, app: &App) {
    let mut parts: Vec<Part> = app.ledger.memory();
    parts.extend([
        ("event_streams", app.streams.bytes()),
        ("request_bodies", app.bodies.bytes()),
        ("unsent_answers", app.connections.unsent()),
        ("summaries", app.summaries.bytes()),
    ]);
    // Writing to a string cannot fail, here and below.
    let _ =
        writeln!(out, "# HELP allocd_memory_bytes Memory by holder; docs/metrics.md says which.");
    let _ = writeln!(out, "# TYPE allocd_memory_bytes gauge");
    for (part, bytes) in parts {
        let _ = writeln!(out, "allocd_memory_bytes{{part=\"{part}\"}} {bytes}");
    }
    if let Some(bytes) = resident() {
        let name = "process_resident_memory_bytes";
        let _ = writeln!(out, "# HELP {name} Memory of the whole process.\n# TYPE {name} gauge");
        let _ = writeln!(out, "{name} {bytes}");
    }
}

/// What the system says of the process, in bytes, where it says so.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_takes_some_memory() {
        assert!(resident().expect("the system says") > 1_000_000);
    }
}
