//! A schema ready for use: its keywords in their order, patterns compiled.

use regex::Regex;
use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    pub(super) keywords: Vec<Keyword>,
    /// The schema as it was written, for messages.
    pub(super) source: Value,
}

/// The types that values have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Null,
}

/// The formats of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A uuid as bodies take it.
    Lenient,
    /// A uuid with its hyphens in their places.
    Hyphenated,
}

/// A pattern and the text it was made of.
#[derive(Debug)]
pub(super) struct Pattern {
    pub text: String,
    pub regex: Regex,
}

/// One keyword of a schema.
#[derive(Debug)]
pub(super) enum Keyword {
    Type(Vec<Type>),
    Required(Vec<String>),
    Properties(Vec<(String, Schema)>),
    PatternProperties(Vec<(Pattern, Schema)>),
    /// `additionalProperties: false`, with the names and patterns of its neighbours.
    NoOthers {
        names: Vec<String>,
        patterns: Vec<Regex>,
        pattern_texts: Vec<String>,
    },
    MinProperties(usize),
    Items(Box<Schema>),
    MinItems(usize),
    UniqueItems,
    Minimum(f64),
    Maximum(f64),
    MinLength(usize),
    MaxLength(usize),
    Pattern(Pattern),
    Enum(Vec<Value>),
    Format(Format),
}

impl Type {
    /// The name in schemas and sentences.
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Null => "null",
        }
    }

    /// Whether a value is of the type. 10.0 is an integer; true is no number.
    pub(super) fn covers(self, value: &Value) -> bool {
        match self {
            Type::Object => value.is_object(),
            Type::Array => value.is_array(),
            Type::String => value.is_string(),
            Type::Number => value.is_number(),
            Type::Null => value.is_null(),
            Type::Integer => {
                value.is_i64()
                    || value.is_u64()
                    || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
        }
    }
}

impl Keyword {
    /// The name in schemas and messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Keyword::Type(_) => "type",
            Keyword::Required(_) => "required",
            Keyword::Properties(_) => "properties",
            Keyword::PatternProperties(_) => "patternProperties",
            Keyword::NoOthers { .. } => "additionalProperties",
            Keyword::MinProperties(_) => "minProperties",
            Keyword::Items(_) => "items",
            Keyword::MinItems(_) => "minItems",
            Keyword::UniqueItems => "uniqueItems",
            Keyword::Minimum(_) => "minimum",
            Keyword::Maximum(_) => "maximum",
            Keyword::MinLength(_) => "minLength",
            Keyword::MaxLength(_) => "maxLength",
            Keyword::Pattern(_) => "pattern",
            Keyword::Enum(_) => "enum",
            Keyword::Format(_) => "format",
        }
    }
}
