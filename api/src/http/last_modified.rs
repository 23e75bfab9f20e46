//! `last-modified`: RFC 1123 times in GMT, in whole seconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The header's text for a time in microseconds since the epoch. Times that the format cannot
/// show (before 1970, after 9999) become the epoch.
#[must_use]
pub fn text(micros: i64) -> String {
    const LAST: u64 = 253_402_300_799; // the end of the year 9999
    let seconds = u64::try_from(micros / 1_000_000).unwrap_or(0);
    let seconds = if seconds > LAST { 0 } else { seconds };
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// The present, in microseconds since the epoch.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_are_shown() {
        assert_eq!(text(784_111_777_999_999), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(-5), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(i64::MAX), "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
