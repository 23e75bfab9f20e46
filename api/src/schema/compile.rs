//! From a schema as written to one ready for use. Schemas are part of the program: one that
//! cannot be compiled is a mistake in it, found by the first test that uses it.

use regex::Regex;
use serde_json::{Map, Value};

use super::keyword::{Format, Keyword, Pattern, Schema, Type};

/// Compiles a schema.
pub(super) fn compile(source: &Value) -> Schema {
    // Here and below: the schemas are this program's own constants, and compiled when it starts.
    let object = source.as_object().expect("a schema is an object");
    let keywords = object.iter().map(|(name, value)| keyword(name, value, object)).collect();
    Schema { keywords, source: source.clone() }
}

fn keyword(name: &str, value: &Value, schema: &Map<String, Value>) -> Keyword {
    match name {
        "type" => Keyword::Type(types(value)),
        "required" => Keyword::Required(strings(value)),
        "properties" => Keyword::Properties(
            entries(value).map(|(name, schema)| (name.clone(), compile(schema))).collect(),
        ),
        "patternProperties" => Keyword::PatternProperties(
            entries(value).map(|(text, schema)| (pattern(text), compile(schema))).collect(),
        ),
        "additionalProperties" => no_others(schema),
        "minProperties" => Keyword::MinProperties(size(value)),
        "items" => Keyword::Items(Box::new(compile(value))),
        "minItems" => Keyword::MinItems(size(value)),
        "uniqueItems" => Keyword::UniqueItems,
        "minimum" => Keyword::Minimum(number(value)),
        "maximum" => Keyword::Maximum(number(value)),
        "minLength" => Keyword::MinLength(size(value)),
        "maxLength" => Keyword::MaxLength(size(value)),
        "pattern" => Keyword::Pattern(pattern(value.as_str().expect("a pattern is a string"))),
        "enum" => Keyword::Enum(value.as_array().expect("an enum is a list").clone()),
        "format" => Keyword::Format(format(value)),
        other => panic!("unknown keyword {other}"),
    }
}

fn no_others(schema: &Map<String, Value>) -> Keyword {
    let keys = |name: &str| -> Vec<String> {
        let object = schema.get(name).and_then(Value::as_object);
        object.map(|object| object.keys().cloned().collect()).unwrap_or_default()
    };
    let mut pattern_texts = keys("patternProperties");
    pattern_texts.sort();
    Keyword::NoOthers {
        names: keys("properties"),
        patterns: pattern_texts.iter().map(|text| regex(text)).collect(),
        pattern_texts,
    }
}

fn types(value: &Value) -> Vec<Type> {
    let names = match value {
        Value::String(name) => vec![name.clone()],
        list => strings(list),
    };
    let all = [Type::Object, Type::Array, Type::String, Type::Integer, Type::Number, Type::Null];
    let named = |name: &String| {
        let mut all = all.into_iter();
        all.find(|kind| kind.name() == name).expect("a known type")
    };
    names.iter().map(named).collect()
}

fn format(value: &Value) -> Format {
    match value.as_str() {
        Some("uuid") => Format::Lenient,
        Some("hyphenated-uuid") => Format::Hyphenated,
        _ => panic!("unknown format {value}"),
    }
}

fn pattern(text: &str) -> Pattern {
    Pattern { text: text.to_owned(), regex: regex(text) }
}

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a pattern that compiles")
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().expect("an object of schemas").iter()
}

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().expect("a list of strings");
    list.iter().map(|item| item.as_str().expect("a string").to_owned()).collect()
}

fn size(value: &Value) -> usize {
    let number = value.as_u64().expect("a size");
    usize::try_from(number).expect("a size that fits")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}
