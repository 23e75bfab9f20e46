//! Query strings: taking them apart, and the parameters that several routes share.

pub mod candidates;
pub mod member_of;
pub mod providers;
pub mod required;
pub mod resources;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::http::failure::Failure;

/// The most parameters that a query string may have.
const MOST: usize = 1_000;

/// A query string, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Takes a query string apart. A parameter without a value has an empty one.
    ///
    /// # Errors
    /// 400 for what is not UTF-8 once decoded, and for more parameters than anybody needs.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let parts = text.split('&').filter(|part| !part.is_empty());
        let mut pairs = Vec::new();
        for part in parts {
            if pairs.len() == MOST {
                return Err(invalid(format!("more than {MOST} parameters")));
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self { pairs })
    }

    /// The parameters in the order of the query string.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Every value of a parameter, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The last value of a parameter.
    #[must_use]
    pub fn last<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next_back()
    }

    /// The first value of a parameter.
    #[must_use]
    pub fn first<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// The last value of each parameter, as an object that a schema can check.
    #[must_use]
    pub fn to_object(&self) -> Value {
        let entries =
            self.pairs.iter().map(|(name, value)| (name.clone(), Value::String(value.clone())));
        Value::Object(entries.collect::<Map<_, _>>())
    }
}

/// 400 with the words that all complaints about query strings start with.
#[must_use]
pub fn invalid(what: impl AsRef<str>) -> Failure {
    Failure::bad_request(format!("Invalid query string parameters: {}", what.as_ref()))
}

fn decode(text: &str) -> Result<String, Failure> {
    let spaced: Cow<'_, str> =
        if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(error) => Err(invalid(format!("{text} is not UTF-8: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_kept_in_order() {
        let query = Query::parse("name=%e2%98%83+x&&a&name=2=3").expect("a query");
        let pairs: Vec<_> = query.pairs().collect();
        assert_eq!(pairs, [("name", "☃ x"), ("a", ""), ("name", "2=3")]);
        assert_eq!((query.first("name"), query.last("name")), (Some("☃ x"), Some("2=3")));
        assert_eq!(query.to_object(), serde_json::json!({"name": "2=3", "a": ""}));
    }

    #[test]
    fn malformed_utf8_is_refused() {
        let refusal = Query::parse("name=%ff").expect_err("no UTF-8");
        assert!(refusal.message.starts_with("Invalid query string parameters: "));
        assert!(Query::parse(&"a&".repeat(MOST + 1)).is_err());
    }
}
