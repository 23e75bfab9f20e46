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

/// One media range with its weight.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// Whether it has parameters of its own: then it means that very form of a type only.
    has_parameters: bool,
    /// In thousandths.
    quality: u16,
}

/// Whether JSON is acceptable. An absent or malformed header accepts everything.
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
/// same or if the header is malformed; an absent or open (`*/*`) one counts as JSON.
#[must_use]
pub fn error_form(header: Option<&str>) -> ErrorForm {
    if counts_as_json(header) {
        return ErrorForm::Json;
    }
    let Some(ranges) = header.and_then(parse) else {
        return ErrorForm::Html;
    };
    let html = quality(&ranges, "text", "html");
    let json = quality(&ranges, "application", "json");
    match (html, json) {
        (0, 0) => ErrorForm::Plain,
        _ if html >= json => ErrorForm::Html,
        _ => ErrorForm::Json,
    }
}

/// What the client accepts as far as answers say it: an absent or open header is one for JSON.
#[must_use]
pub fn in_effect(header: Option<&str>) -> &str {
    header.filter(|_| !counts_as_json(header)).unwrap_or("application/json")
}

fn counts_as_json(header: Option<&str>) -> bool {
    matches!(header.map(str::trim), None | Some("" | "*/*" | "application/json"))
}

/// The quality of a media type: that of the most specific range that covers it, of several alike the
/// first.
fn quality(ranges: &[Range<'_>], kind: &str, subtype: &str) -> u16 {
    let rank = |range: &Range<'_>| {
        let same_kind = range.kind.eq_ignore_ascii_case(kind);
        if same_kind && range.subtype.eq_ignore_ascii_case(subtype) {
            (!range.has_parameters).then_some(2)
        } else if same_kind && range.subtype == "*" {
            Some(1)
        } else if (range.kind, range.subtype) == ("*", "*") {
            Some(0)
        } else {
            None
        }
    };
    let mut best = None;
    for range in ranges {
        if let Some(rank) = rank(range)
            && best.is_none_or(|(known, _)| rank > known)
        {
            best = Some((rank, range.quality));
        }
    }
    best.map_or(0, |(_, quality)| quality)
}

/// The ranges of a header; none if it is malformed.
fn parse(header: &str) -> Option<Vec<Range<'_>>> {
    let mut scan = Scan(header.trim());
    let mut ranges = Vec::new();
    // An empty list is one; elsewhere elements may be missing between commas, but the first only if
    // the second is missing too.
    if !scan.0.is_empty() && !scan.0.starts_with(',') {
        ranges.push(scan.range()?);
    } else if !scan.0.is_empty() {
        scan.take(",")?;
    }
    while !scan.0.is_empty() {
        scan.blanks();
        scan.take(",")?;
        let rest = scan.0;
        scan.blanks();
        if scan.0.is_empty() || scan.0.starts_with(',') {
            scan.0 = rest;
        } else {
            ranges.push(scan.range()?);
        }
    }
    Some(ranges)
}

/// What is left to read of a header. Each method takes from its front; `None`: that is not there.
struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    fn take(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let end = self.0.find(|c| !is_token(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// A token or a quoted string.
    fn value(&mut self) -> Option<()> {
        if !self.0.starts_with('"') {
            return self.token().map(|_| ());
        }
        let mut characters = self.0.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(());
                }
                '\\' => {
                    characters.next()?;
                }
                _ => {}
            }
        }
        None
    }

    /// A media range, its parameters, its weight and what may follow the weight.
    fn range(&mut self) -> Option<Range<'a>> {
        let kind = self.token()?;
        self.take("/")?;
        let subtype = self.token()?;
        let mut range = Range { kind, subtype, has_parameters: false, quality: 1000 };
        let mut weighed = false;
        loop {
            let before = self.0;
            self.blanks();
            if self.take(";").is_none() {
                self.0 = before;
                return Some(range);
            }
            self.blanks();
            let name = self.token()?;
            if self.take("=").is_none() {
                // Only what follows a weight may do without a value.
                if !weighed {
                    return None;
                }
            } else if !weighed && name.eq_ignore_ascii_case("q") {
                range.quality = quality_value(self.token()?)?;
                weighed = true;
            } else {
                self.value()?;
                range.has_parameters |= !weighed;
            }
        }
    }
}

/// A weight in thousandths: 0 to 1 with at most three digits behind the point.
fn quality_value(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
    let thousandths: u16 = match (whole, digits) {
        ("0", true) => format!("{fraction:0<3}").parse().ok()?,
        ("1", true) if fraction.bytes().all(|b| b == b'0') => 1000,
        _ => return None,
    };
    Some(thousandths)
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
    fn a_malformed_header_takes_json_but_gets_html() {
        for header in [
            "nonsense",
            "text/html;q=pony",
            "application/json;q=2",
            "application/json;q=0.1234",
            "application/json;x",
            "application/json, text/x y",
            ", application/json",
            "application/json;x=\"y",
        ] {
            assert!(takes_json(Some(header)), "{header}");
            assert_eq!(error_form(Some(header)), ErrorForm::Html, "{header}");
        }
    }

    #[test]
    fn a_range_with_parameters_is_another_type() {
        assert!(!takes_json(Some("application/json; charset=utf-8")));
        assert!(!takes_json(Some("*/json, application/json;x=\"a,b;c\"")));
        assert!(takes_json(Some("application/json;q=0.5;level=1")));
        assert!(takes_json(Some("application/*;level=1")));
        assert_eq!(error_form(Some("text/html;level=1, application/json")), ErrorForm::Json);
    }

    #[test]
    fn of_ranges_alike_the_first_counts() {
        assert!(!takes_json(Some("application/json;q=0, application/json")));
        assert!(takes_json(Some("application/json, application/json;q=0")));
        assert!(takes_json(Some("text/html,, ,APPLICATION/JSON;q=0.001,")));
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
