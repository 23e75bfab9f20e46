//! What the client can read: the `accept` header (RFC 9110, 12.5.1).

/// The form in which an error is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorForm {
    /// `application/json`, Placement's error object.
    Json,
    /// `text/html`, for browsers.
    Html,
    /// `text/plain`, if the client reads neither of the others.
    Plain,
}

struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// In thousandths.
    quality: u16,
}

/// Whether JSON is acceptable. An absent or unreadable header accepts everything.
#[must_use]
pub fn takes_json(header: Option<&str>) -> bool {
    if counts_as_json(header) {
        return true;
    }
    match header.and_then(parse) {
        None => true,
        Some(ranges) => quality(&ranges, "application", "json") > 0,
    }
}

/// The form for an error: the better one of HTML and JSON, HTML if the client likes both the
/// same; an absent, open (`*/*`) or unreadable header counts as JSON.
#[must_use]
pub fn error_form(header: Option<&str>) -> ErrorForm {
    if counts_as_json(header) {
        return ErrorForm::Json;
    }
    let Some(ranges) = header.and_then(parse) else {
        return ErrorForm::Json;
    };
    let html = quality(&ranges, "text", "html");
    let json = quality(&ranges, "application", "json");
    match (html, json) {
        (0, 0) => ErrorForm::Plain,
        _ if html >= json => ErrorForm::Html,
        _ => ErrorForm::Json,
    }
}

fn counts_as_json(header: Option<&str>) -> bool {
    matches!(header.map(str::trim), None | Some("" | "*/*" | "application/json"))
}

/// The quality of a media type: that of the most specific range that covers it.
fn quality(ranges: &[Range<'_>], kind: &str, subtype: &str) -> u16 {
    let rank = |range: &Range<'_>| {
        let same_kind = range.kind.eq_ignore_ascii_case(kind);
        if same_kind && range.subtype.eq_ignore_ascii_case(subtype) {
            Some(2)
        } else if same_kind && range.subtype == "*" {
            Some(1)
        } else if range.kind == "*" {
            Some(0)
        } else {
            None
        }
    };
    let covering = ranges.iter().filter_map(|range| Some((rank(range)?, range.quality)));
    covering.max().map_or(0, |(_, quality)| quality)
}

/// The ranges of a header; none if any part of it cannot be read.
fn parse(header: &str) -> Option<Vec<Range<'_>>> {
    let parts = header.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(parse_range).collect()
}

fn parse_range(part: &str) -> Option<Range<'_>> {
    let mut fields = part.split(';').map(str::trim);
    let (kind, subtype) = fields.next()?.split_once('/')?;
    let token = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    if !token(kind) || !token(subtype) || (kind == "*" && subtype != "*") {
        return None;
    }
    let mut quality = 1000;
    for field in fields {
        if let Some(value) = field.strip_prefix("q=").or_else(|| field.strip_prefix("Q=")) {
            quality = parse_quality(value)?;
        }
    }
    Some(Range { kind, subtype, quality })
}

fn parse_quality(text: &str) -> Option<u16> {
    let value: f32 = text.trim().parse().ok()?;
    if !(0.0..=1.0).contains(&value) {
        return None;
    }
    // In range as checked, so that the conversion loses the fraction only.
    Some((value * 1000.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_taken_if_a_range_covers_it() {
        for header in [
            None,
            Some(""),
            Some("*/*"),
            Some("application/*"),
            Some("text/html, application/json;q=0.1"),
        ] {
            assert!(takes_json(header), "{header:?}");
        }
        for header in ["text/plain", "application/json;q=0", "application/json;q=0, */*"] {
            assert!(!takes_json(Some(header)), "{header}");
        }
    }

    #[test]
    fn an_unreadable_header_is_ignored() {
        assert!(takes_json(Some("nonsense")));
        assert!(takes_json(Some("text/html;q=pony")));
        assert_eq!(error_form(Some("nonsense")), ErrorForm::Json);
    }

    #[test]
    fn a_browser_gets_html() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!(error_form(Some(browser)), ErrorForm::Html);
        assert_eq!(error_form(Some("application/json, text/html;q=0.5")), ErrorForm::Json);
        assert_eq!(error_form(Some("image/png")), ErrorForm::Plain);
        assert_eq!(error_form(None), ErrorForm::Json);
    }
}
