//! Amounts, ratios and times as people read them.

use ledger::time::Timestamp;

/// The unit of a standard resource class (os-resource-classes names it in the class's name); empty
/// for a count.
pub(crate) fn unit(class: &str) -> &'static str {
    if class.ends_with("_KILOBIT_PER_SEC") {
        "kbit/s"
    } else if class.ends_with("_MB") {
        "MB"
    } else if class.ends_with("_GB") {
        "GB"
    } else if class.ends_with("_BYTES") {
        "B"
    } else {
        ""
    }
}

/// An amount with its unit; large ones also in a larger unit: `2048 MB (2 GiB)`.
pub(crate) fn amount(class: &str, amount: i128) -> String {
    match unit(class) {
        "" => amount.to_string(),
        "MB" => with_larger(amount, "MB", "GiB"),
        "GB" => with_larger(amount, "GB", "TiB"),
        unit => format!("{amount} {unit}"),
    }
}

fn with_larger(amount: i128, unit: &str, larger: &str) -> String {
    if amount.abs() < 1024 || (unit == "GB" && amount.abs() < 10 * 1024) {
        return format!("{amount} {unit}");
    }
    let in_larger = format!("{:.1}", amount as f64 / 1024.0);
    format!("{amount} {unit} ({} {larger})", in_larger.trim_end_matches(".0"))
}

/// A ratio, always with a point: `1.0`, `16.0`, `1.5`.
pub(crate) fn ratio(ratio: f64) -> String {
    format!("{ratio:?}")
}

/// How long from `from` to `to`: `850 ms`, `3 s`, `12 min`, `5 h 3 min`, `4 days 2 h`.
pub(crate) fn span(from: Timestamp, to: Timestamp) -> String {
    let micros = to.micros().saturating_sub(from.micros()).max(0);
    let seconds = micros / 1_000_000;
    match seconds {
        0 => format!("{} ms", micros / 1000),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shown_in_gib_too_and_counts_have_no_unit() {
        assert_eq!(amount("MEMORY_MB", 2048), "2048 MB (2 GiB)");
        assert_eq!(amount("MEMORY_MB", 1536), "1536 MB (1.5 GiB)");
        assert_eq!(amount("MEMORY_MB", 512), "512 MB");
        assert_eq!(amount("DISK_GB", 1028), "1028 GB");
        assert_eq!(amount("VCPU", 4), "4");
        assert_eq!(amount("NET_BW_EGR_KILOBIT_PER_SEC", 4000), "4000 kbit/s");
    }

    #[test]
    fn ratios_and_spans() {
        assert_eq!(ratio(1.0), "1.0");
        assert_eq!(ratio(1.5), "1.5");
        let at = Timestamp::from_micros;
        assert_eq!(span(at(0), at(850_000)), "850 ms");
        assert_eq!(span(at(0), at(61_000_000)), "1 min 1 s");
        assert_eq!(span(at(0), at(90_000_000_000)), "1 days 1 h");
        assert_eq!(span(at(5), at(0)), "0 ms");
    }
}
