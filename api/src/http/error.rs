//! Error bodies as Placement sends them: JSON, HTML for browsers, or plain text.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::accept::ErrorForm;
use super::failure::{Code, Failure};
use super::microversion::{ERROR_CODES, Version};

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
    if failure.status == StatusCode::UNAUTHORIZED {
        return ("application/json", Bytes::from(unauthorized().to_string()));
    }
    match form {
        ErrorForm::Json => {
            ("application/json", Bytes::from(json(failure, version, request_id).to_string()))
        }
        ErrorForm::Html => ("text/html; charset=utf-8", Bytes::from(html(failure))),
        ErrorForm::Plain => ("text/plain; charset=utf-8", Bytes::from(plain(failure))),
    }
}

fn json(failure: &Failure, version: Option<Version>, request_id: &str) -> Value {
    let mut error = json!({
        "status": failure.status.as_u16(),
        "title": title(failure.status),
        "detail": detail(failure),
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

fn unauthorized() -> Value {
    json!({
        "message": "This server could not verify that you are authorized to access the document you requested. \
                    Either you supplied the wrong credentials (e.g., bad password), or your client does not \
                    understand how to supply the credentials required.",
        "code": "401 Unauthorized",
        "title": "Unauthorized",
    })
}

/// The opening sentence, an empty line, a blank, the message without line feeds and without
/// anything between angle brackets (an accident of Placement's that clients have learnt), and
/// two blanks.
fn detail(failure: &Failure) -> String {
    let message = without_tags(&failure.message).replace('\n', " ");
    format!("{}\n\n {message}  ", opening(failure))
}

fn without_tags(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let Some(end) = rest[start..].find('>') else { break };
        kept.push_str(&rest[..start]);
        rest = &rest[start + end + 1..];
    }
    kept.push_str(rest);
    kept
}

fn html(failure: &Failure) -> String {
    let title = format!("{} {}", failure.status.as_u16(), title(failure.status));
    format!(
        "<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n  \
         {opening}<br /><br />\n{message}\n\n </body>\n</html>",
        opening = escape(&opening(failure)),
        message = escape(&failure.message),
    )
}

fn plain(failure: &Failure) -> String {
    let title = format!("{} {}", failure.status.as_u16(), title(failure.status));
    format!("{title}\n\n{}\n\n{}\n", opening(failure), failure.message)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Request Entity Too Large",
        status => status.canonical_reason().unwrap_or("Error"),
    }
}

fn opening(failure: &Failure) -> String {
    let subject = failure.subject.as_deref().unwrap_or_default();
    let text = match failure.status {
        StatusCode::BAD_REQUEST => {
            "The server could not comply with the request since it is either malformed or otherwise incorrect."
        }
        StatusCode::FORBIDDEN => "Access was denied to this resource.",
        StatusCode::NOT_FOUND => "The resource could not be found.",
        StatusCode::METHOD_NOT_ALLOWED => {
            return format!("The method {subject} is not allowed for this resource.");
        }
        StatusCode::NOT_ACCEPTABLE => {
            return format!(
                "The resource could not be generated that was acceptable to your browser (content of type {subject}."
            );
        }
        StatusCode::CONFLICT => "There was a conflict when trying to complete your request.",
        StatusCode::PAYLOAD_TOO_LARGE => "The body of your request was too large for this server.",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            return format!("The request media type {subject} is not supported by this server.");
        }
        StatusCode::UNPROCESSABLE_ENTITY => "The server could not do what was asked.",
        StatusCode::SERVICE_UNAVAILABLE => {
            "The server is currently unavailable. Please try again at a later time."
        }
        _ => "The server has either erred or is incapable of performing the requested operation.",
    };
    text.to_owned()
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

    #[test]
    fn html_and_plain_text_have_the_same_sentences() {
        let failure = Failure::not_found("No <such> thing");
        let (kind, body) = render(&failure, ErrorForm::Html, None, "req-1");
        let body = String::from_utf8(body.to_vec()).expect("text");
        assert!(kind.starts_with("text/html"));
        assert!(
            body.contains("The resource could not be found.")
                && body.contains("No &lt;such&gt; thing")
        );
        let (kind, body) = render(&failure, ErrorForm::Plain, None, "req-1");
        let body = String::from_utf8(body.to_vec()).expect("text");
        assert!(kind.starts_with("text/plain"));
        assert!(
            body.contains("The resource could not be found.") && body.contains("No <such> thing")
        );
    }

    #[test]
    fn the_405_names_the_method() {
        let failure = Failure::method_not_allowed(&http::Method::DELETE, None);
        let detail = error(&failure, Some(MAX))["detail"].to_string();
        assert!(detail.contains("The method DELETE is not allowed for this resource."));
    }
}
