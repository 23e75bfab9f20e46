//! `/traits` and `/traits/{name}`.

use http::StatusCode;
use ledger::command::{Command, Named};
use ledger::state::Entry;
use serde_json::json;

use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query::Query;
use crate::refusals::About;
use crate::schema;

/// `GET /traits`.
///
/// # Errors
/// 400.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = Query::parse(&request.query)?;
    schema::check_query(&query.to_object(), schema::traits::LIST.at(request.version))?;
    let names = query.last("name").map(NameFilter::parse).transpose()?;
    let associated = query.last("associated").map(associated).transpose()?;
    let view = app.view_for(request);
    let shown = view.traits().iter().filter(|(_, name, entry)| {
        names.as_ref().is_none_or(|filter| filter.covers(name))
            && associated.is_none_or(|used| used == (entry.users > 0))
    });
    let shown: Vec<_> = shown.collect();
    let newest = shown.iter().map(|(_, _, entry)| entry.created_at.micros()).max();
    let list: Vec<&str> = shown.iter().map(|(_, name, _)| &***name).collect();
    Ok(Reply::json(&json!({ "traits": list }))?.modified(newest.unwrap_or_else(last_modified::now)))
}

/// `GET /traits/{name}`: 204 without a body.
///
/// # Errors
/// 404.
pub fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let name = request.param(0);
    let id = view.traits().id(name).ok_or_else(|| unknown(name))?;
    Ok(Reply::no_content().modified(modified(view.traits().entry(id))))
}

/// `PUT /traits/{name}`: makes it if it is not there.
///
/// # Errors
/// 400.
pub async fn ensure(app: &App, request: &Request) -> Result<Reply, Failure> {
    let name = request.param(0);
    if !is_custom(name) {
        return Err(Failure::bad_request(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix \
             \"CUSTOM_\" and use following characters: \"A\"-\"Z\", \"0\"-\"9\" and \"_\"",
        ));
    }
    let location = format!("/traits/{name}");
    // With a command id the ledger is asked, which keeps what is answered.
    if !request.is_named()
        && let Some(created) = created_at(app, name)
    {
        return Ok(Reply::no_content().location(location).modified(created));
    }
    let command = Command::CreateTrait(Named { name: name.to_owned() });
    let accepted = app.submit(request, command, About::Trait).await?;
    // Somebody else was faster, or it was there.
    let status =
        if accepted.changed_nothing() { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
    let created = created_at(app, name).filter(|_| !request.is_named());
    let created = created.unwrap_or_else(|| accepted.recorded_at());
    Ok(Reply::empty(status).location(location).modified(created))
}

fn created_at(app: &App, name: &str) -> Option<i64> {
    let view = app.view();
    view.traits().id(name).map(|id| modified(view.traits().entry(id)))
}

/// `DELETE /traits/{name}`.
///
/// # Errors
/// 400, 404 or 409.
pub async fn delete(app: &App, request: &Request) -> Result<Reply, Failure> {
    let command = Command::DeleteTrait(Named { name: request.param(0).to_owned() });
    app.submit(request, command, About::Trait).await?;
    Ok(Reply::no_content())
}

fn unknown(name: &str) -> Failure {
    Failure::not_found(format!("No such trait(s): {name}."))
}

fn modified(entry: &Entry) -> i64 {
    entry.created_at.micros()
}

fn is_custom(name: &str) -> bool {
    const LONGEST: usize = 255;
    let allowed = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let rest = name.strip_prefix("CUSTOM_").unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(allowed) && name.len() <= LONGEST
}

fn associated(value: &str) -> Result<bool, Failure> {
    match value.to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Failure::bad_request(
            "The query parameter \"associated\" only accepts \"true\" or \"false\"",
        )),
    }
}

enum NameFilter<'a> {
    In(Vec<&'a str>),
    StartsWith(&'a str),
    /// An operator that is not known filters nothing.
    None,
}

impl<'a> NameFilter<'a> {
    fn parse(value: &'a str) -> Result<Self, Failure> {
        let (operator, operand) = value.split_once(':').ok_or_else(|| {
            Failure::bad_request(format!(
                "Badly formatted name parameter. Expected name query string parameter in form: \
                 ?name=[in|startswith]:[name1,name2|prefix]. Got: \"{value}\""
            ))
        })?;
        Ok(match operator {
            "in" => Self::In(operand.split(',').collect()),
            "startswith" => Self::StartsWith(operand),
            _ => Self::None,
        })
    }

    fn covers(&self, name: &str) -> bool {
        match self {
            Self::In(names) => names.contains(&name),
            Self::StartsWith(prefix) => name.starts_with(prefix),
            Self::None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_names_have_a_form() {
        assert!(is_custom("CUSTOM_A_1"));
        for name in ["CUSTOM_", "HW_CPU_X86_AVX", "CUSTOM_a", "CUSTOM_É", ""] {
            assert!(!is_custom(name), "{name}");
        }
        assert!(is_custom(&format!("CUSTOM_{}", "A".repeat(248))));
        assert!(!is_custom(&format!("CUSTOM_{}", "A".repeat(249))));
    }

    #[test]
    fn name_filters_have_operators() {
        let covers =
            |filter: &str, name: &str| NameFilter::parse(filter).expect("a filter").covers(name);
        assert!(covers("in:A,B", "B") && !covers("in:A,B", "C"));
        assert!(covers("startswith:CUSTOM", "CUSTOM_A") && !covers("startswith:CUSTOM", "HW_A"));
        assert!(covers("like:x", "anything"));
        assert!(NameFilter::parse("A").is_err());
    }

    #[test]
    fn associated_is_true_or_false_in_any_case() {
        assert_eq!(associated("True").ok(), Some(true));
        assert_eq!(associated("FALSE").ok(), Some(false));
        assert!(associated("1").is_err());
    }
}
