//! Error bodies as Placement sends them: JSON, HTML for browsers, or plain text.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::accept::ErrorForm;
use super::failure::{Code, Failure};
use super::microversion::{ERROR_CODES, Version};

/// The content type of HTML.
pub const HTML: &str = "text/html; charset=UTF-8";

/// Renders a failure: the content type and the body.
///
/// `version` is the one in effect, none if the request's could not be understood.
#[must_use]
pub fn render(
    failure: &Failure,
    form: ErrorForm,
    version: Option<Version>,
    request_id: &str,
) -> (&'static str, Bytes) {
    match form {
        ErrorForm::Json => {
            ("application/json", Bytes::from(json(failure, version, request_id).to_string()))
        }
        ErrorForm::Html => (HTML, Bytes::from(html(failure))),
        ErrorForm::Plain => ("text/plain; charset=UTF-8", Bytes::from(plain(failure))),
    }
}

fn json(failure: &Failure, version: Option<Version>, request_id: &str) -> Value {
    if failure.status == StatusCode::UNAUTHORIZED {
        return unauthorized(failure);
    }
    let mut error = json!({
        "status": failure.status.as_u16(),
        "title": title(failure.status),
        "detail": without_tags(&markup(failure, str::to_owned)),
    });
    if let Some(object) = error.as_object_mut() {
        if let (Code::Shown(code), Some(true)) = (failure.code, version.map(|v| v >= ERROR_CODES)) {
            object.insert("code".to_owned(), code.into());
        }
        object.insert("request_id".to_owned(), request_id.into());
        for (name, value) in failure.fields.iter() {
            object.insert(name.clone(), value.clone());
        }
    }
    json!({ "errors": [error] })
}

/// The 401 comes from before Placement's own error objects: it has another shape, and the markup is
/// left in.
fn unauthorized(failure: &Failure) -> Value {
    json!({
        "message": markup(failure, str::to_owned),
        "code": headline(failure.status),
        "title": title(failure.status),
    })
}

fn html(failure: &Failure) -> String {
    let headline = headline(failure.status);
    format!(
        "<html>\n <head>\n  <title>{headline}</title>\n </head>\n <body>\n  <h1>{headline}</h1>\n  \
         {body}\n </body>\n</html>",
        body = markup(failure, escape),
    )
}

fn plain(failure: &Failure) -> String {
    let body = without_tags(&markup(failure, str::to_owned));
    format!("{}\n\n{body}", headline(failure.status))
}

/// The failure as the HTML from which Placement makes all forms. Its blanks and line feeds end up in
/// the texts that clients see.
fn markup(failure: &Failure, escape: impl Fn(&str) -> String) -> String {
    let message = escape(&failure.message);
    let subject = escape(failure.subject.as_deref().unwrap_or_default());
    match failure.status {
        StatusCode::METHOD_NOT_ALLOWED => {
            format!(
                "The method {subject} is not allowed for this resource. <br /><br />\n{message}"
            )
        }
        StatusCode::NOT_ACCEPTABLE => format!(
            "The resource could not be generated that was acceptable to your browser\n\
             (content of type {subject}. <br /><br />\n{message}"
        ),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => format!(
            "The request media type {subject} is not supported by this server.\n<br /><br />\n{message}"
        ),
        status => format!("{}<br /><br />\n{message}\n\n", opening(status)),
    }
}

/// Takes the markup out again. What looks like markup in the message goes with it (an accident of
/// Placement's that clients have learnt).
fn without_tags(text: &str) -> String {
    let text = text.replace('\n', " ").replace('\r', "");
    let text = without(&text, "\n", |tag| {
        tag.get(1..3).is_some_and(|name| name.eq_ignore_ascii_case("br"))
    });
    let text = text.replace("<!--", "").replace("-->", "");
    without(&text, "", |_| true)
}

/// The text with something else in place of all tags of a kind: from a `<` to the next `>`.
fn without(text: &str, instead: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        let Some((_, after)) = tag.split_once('>') else { break };
        kept.push_str(before);
        if is_meant(tag) {
            kept.push_str(instead);
            rest = after;
        } else {
            kept.push('<');
            rest = &tag[1..];
        }
    }
    kept.push_str(rest);
    kept
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            c if c.is_ascii() => escaped.push(c),
            c => escaped.push_str(&format!("&#{};", u32::from(c))),
        }
    }
    escaped
}

fn headline(status: StatusCode) -> String {
    format!("{} {}", status.as_u16(), title(status))
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Request Entity Too Large",
        status => status.canonical_reason().unwrap_or("Error"),
    }
}

/// The standard sentence of a status.
fn opening(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => {
            "The server could not comply with the request since it is either malformed or otherwise incorrect."
        }
        StatusCode::UNAUTHORIZED => {
            "This server could not verify that you are authorized to access the document you requested. \
             Either you supplied the wrong credentials (e.g., bad password), or your browser does not \
             understand how to supply the credentials required."
        }
        StatusCode::FORBIDDEN => "Access was denied to this resource.",
        StatusCode::NOT_FOUND => "The resource could not be found.",
        StatusCode::CONFLICT => "There was a conflict when trying to complete your request.",
        StatusCode::PAYLOAD_TOO_LARGE => "The body of your request was too large for this server.",
        StatusCode::UNPROCESSABLE_ENTITY => "The server could not do what was asked.",
        StatusCode::SERVICE_UNAVAILABLE => {
            "The server is currently unavailable. Please try again at a later time."
        }
        _ => "The server has either erred or is incapable of performing the requested operation.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::failure::CONCURRENT_UPDATE;
    use crate::http::microversion::{MAX, MIN};

    fn error(failure: &Failure, version: Option<Version>) -> Value {
        let (kind, body) = render(failure, ErrorForm::Json, version, "req-1");
        assert_eq!(kind, "application/json");
        let mut value: Value = serde_json::from_slice(&body).expect("JSON");
        value["errors"][0].take()
    }

    #[test]
    fn the_body_is_placements_to_the_blank() {
        let failure = Failure::concurrent_update("resource provider generation conflict");
        let expected = json!({
            "status": 409,
            "title": "Conflict",
            "detail": "There was a conflict when trying to complete your request.\n\n resource provider generation conflict  ",
            "code": CONCURRENT_UPDATE,
            "request_id": "req-1",
        });
        assert_eq!(error(&failure, Some(MAX)), expected);
    }

    #[test]
    fn codes_come_with_1_23() {
        let failure = Failure::not_found("");
        assert!(error(&failure, Some(MIN)).get("code").is_none());
        assert!(error(&failure, None).get("code").is_none());
        assert_eq!(error(&failure, Some(MAX))["code"], "placement.undefined_code");
    }

    #[test]
    fn tags_and_line_feeds_are_gone_from_json() {
        let failure = Failure::bad_request("a <b>c\nd > e < f");
        let detail = error(&failure, None)["detail"].to_string();
        assert!(detail.contains("a c d > e < f  "), "{detail}");
    }

    fn text(failure: &Failure, form: ErrorForm) -> (&'static str, String) {
        let (kind, body) = render(failure, form, Some(MAX), "req-1");
        (kind, String::from_utf8(body.to_vec()).expect("text"))
    }

    #[test]
    fn html_and_plain_text_are_placements_to_the_blank() {
        let failure = Failure::not_found("No <such> \"thing\", it's é");
        assert_eq!(
            text(&failure, ErrorForm::Html),
            (
                "text/html; charset=UTF-8",
                "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  \
                 <h1>404 Not Found</h1>\n  The resource could not be found.<br /><br />\n\
                 No &lt;such&gt; &quot;thing&quot;, it&#x27;s &#233;\n\n\n </body>\n</html>"
                    .to_owned()
            )
        );
        assert_eq!(
            text(&failure, ErrorForm::Plain),
            (
                "text/plain; charset=UTF-8",
                "404 Not Found\n\nThe resource could not be found.\n\n No  \"thing\", it's é  "
                    .to_owned()
            )
        );
    }

    #[test]
    fn the_sentences_that_name_something_end_without_blanks() {
        let not_allowed = Failure::method_not_allowed(&http::Method::DELETE, None);
        assert_eq!(
            error(&not_allowed, Some(MAX))["detail"],
            "The method DELETE is not allowed for this resource. \n\n \
             The method specified is not allowed for this resource."
        );
        assert_eq!(
            text(&not_allowed, ErrorForm::Plain).1,
            "405 Method Not Allowed\n\nThe method DELETE is not allowed for this resource. \n\n \
             The method specified is not allowed for this resource."
        );
        assert_eq!(
            error(&Failure::not_acceptable("text/plain"), None)["detail"],
            "The resource could not be generated that was acceptable to your browser \
             (content of type text/plain. \n\n Only application/json is provided"
        );
        assert!(text(&Failure::not_acceptable("text/html"), ErrorForm::Html).1.contains(
            "to your browser\n(content of type text/html. <br /><br />\nOnly application/json is provided\n </body>"
        ));
        assert_eq!(
            error(&Failure::unsupported_media_type(Some("text/plain"), "text/plain; q=1"), None)["detail"],
            "The request media type text/plain; q=1 is not supported by this server. \n\n \
             The media type text/plain is not supported, use application/json"
        );
        let unsupported = Failure::unsupported_media_type(Some("text/plain"), "text/plain");
        assert!(text(&unsupported, ErrorForm::Html).1.contains(
            "  The request media type text/plain is not supported by this server.\n<br /><br />\nThe media type"
        ));
    }

    #[test]
    fn the_401_has_a_shape_of_its_own() {
        let sentence = "This server could not verify that you are authorized to access the document you \
                        requested. Either you supplied the wrong credentials (e.g., bad password), or your \
                        browser does not understand how to supply the credentials required.";
        let failure = Failure::unauthorized();
        let (kind, body) = text(&failure, ErrorForm::Json);
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(kind, "application/json");
        assert_eq!(
            body,
            json!({
                "message": format!("{sentence}<br /><br />\n\n\n"),
                "code": "401 Unauthorized",
                "title": "Unauthorized",
            })
        );
        assert_eq!(
            text(&failure, ErrorForm::Plain).1,
            format!("401 Unauthorized\n\n{sentence}\n\n   ")
        );
        assert!(
            text(&failure, ErrorForm::Html).1.contains("required.<br /><br />\n\n\n\n </body>")
        );
    }

    #[test]
    fn breaks_become_lines_and_other_markup_goes() {
        let detail = |message: &str| {
            let detail = error(&Failure::bad_request(message), None)["detail"].to_string();
            detail.split_once("\\n\\n ").map(|(_, rest)| rest.to_owned()).expect("a message")
        };
        assert_eq!(detail("a<br>b<BR/>c"), "a\\nb\\nc  \"");
        assert_eq!(detail("a <!-- b --> c < d > e < f"), "a  b  c  e < f  \"");
    }
}
