//! Checking a value, and telling the violation nearest to the top of the document.

use std::fmt;

use serde_json::{Map, Value};

use super::keyword::{Format, Keyword, Schema, Type};
use super::python::{repr, repr_str};
use super::{is_hyphenated_uuid, is_lenient_uuid};

/// What is wrong with a value, in the words of Python's jsonschema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    depth: usize,
    sentence: String,
    keyword: &'static str,
    schema_path: String,
    schema: String,
    instance_path: String,
    instance: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n\nFailed validating '{}' in schema{}:\n    {}\n\nOn instance{}:\n    {}",
            self.sentence,
            self.keyword,
            self.schema_path,
            self.schema,
            self.instance_path,
            self.instance,
        )
    }
}

/// The place of a value in its document, as a list of steps from the innermost outwards.
struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    depth: usize,
    /// The steps through the schema, such as `['properties']['total']`.
    schema: Step<'a>,
    instance: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    None,
    Key(&'a str),
    Index(usize),
    Keys(&'a str, &'a str),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::None => Ok(()),
            Step::Key(key) => write!(f, "[{}]", repr_str(key)),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Keys(outer, inner) => write!(f, "[{}][{}]", repr_str(outer), repr_str(inner)),
        }
    }
}

impl<'a> Place<'a> {
    const TOP: Place<'static> =
        Place { outer: None, depth: 0, schema: Step::None, instance: Step::None };

    fn inner(&'a self, schema: Step<'a>, instance: Step<'a>) -> Place<'a> {
        Place { outer: Some(self), depth: self.depth + 1, schema, instance }
    }

    fn path(&self, step: impl Fn(&Place<'_>) -> String + Copy) -> String {
        let mut path = self.outer.map_or_else(String::new, |outer| outer.path(step));
        path.push_str(&step(self));
        path
    }
}

/// Checks a value. Of several violations, the one nearest to the top is told, and of these the
/// first in the order of the schema.
pub(super) fn check(schema: &Schema, value: &Value) -> Option<Violation> {
    let mut checker = Checker { best: None };
    checker.walk(schema, value, &Place::TOP);
    checker.best
}

struct Checker {
    best: Option<Violation>,
}

impl Checker {
    fn walk(&mut self, schema: &Schema, value: &Value, place: &Place<'_>) {
        for keyword in &schema.keywords {
            if self.best.as_ref().is_some_and(|best| best.depth <= place.depth) {
                return;
            }
            match keyword {
                Keyword::Properties(properties) => self.properties(properties, value, place),
                Keyword::PatternProperties(patterns) => {
                    for (name, inner) in members(value) {
                        for (pattern, schema) in patterns {
                            if pattern.regex.is_match(name) {
                                let step = Step::Keys("patternProperties", &pattern.text);
                                self.walk(schema, inner, &place.inner(step, Step::Key(name)));
                            }
                        }
                    }
                }
                Keyword::Items(schema) => {
                    for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
                        self.walk(
                            schema,
                            inner,
                            &place.inner(Step::Key("items"), Step::Index(index)),
                        );
                    }
                }
                keyword => {
                    if let Some(sentence) = violated(keyword, value) {
                        self.found(sentence, keyword, schema, value, place);
                    }
                }
            }
        }
    }

    fn properties(&mut self, properties: &[(String, Schema)], value: &Value, place: &Place<'_>) {
        let Some(object) = value.as_object() else { return };
        for (name, schema) in properties {
            if let Some(inner) = object.get(name) {
                self.walk(
                    schema,
                    inner,
                    &place.inner(Step::Keys("properties", name), Step::Key(name)),
                );
            }
        }
    }

    fn found(
        &mut self,
        sentence: String,
        keyword: &Keyword,
        schema: &Schema,
        value: &Value,
        place: &Place<'_>,
    ) {
        self.best = Some(Violation {
            depth: place.depth,
            sentence,
            keyword: keyword.name(),
            schema_path: place.path(|place| place.schema.to_string()),
            schema: repr(&schema.source),
            instance_path: place.path(|place| place.instance.to_string()),
            instance: repr(value),
        });
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The sentence for a keyword that does not look inside the value, if the value violates it.
/// Keywords about other types than the value's are never violated.
fn violated(keyword: &Keyword, value: &Value) -> Option<String> {
    match (keyword, value) {
        (Keyword::Type(types), value) => wrong_type(types, value),
        (Keyword::Enum(allowed), value) => (!allowed.contains(value)).then(|| {
            format!("{} is not one of {}", repr(value), repr(&Value::Array(allowed.clone())))
        }),
        (keyword, Value::Object(object)) => violated_by_object(keyword, object, value),
        (keyword, Value::Array(list)) => violated_by_list(keyword, list, value),
        (keyword, Value::String(text)) => violated_by_text(keyword, text),
        (keyword, Value::Number(_)) => violated_by_number(keyword, value),
        _ => None,
    }
}

fn wrong_type(types: &[Type], value: &Value) -> Option<String> {
    if types.iter().any(|kind| kind.covers(value)) {
        return None;
    }
    let names: Vec<String> = types.iter().map(|kind| format!("'{}'", kind.name())).collect();
    Some(format!("{} is not of type {}", repr(value), names.join(", ")))
}

fn violated_by_object(
    keyword: &Keyword,
    object: &Map<String, Value>,
    value: &Value,
) -> Option<String> {
    match keyword {
        Keyword::Required(names) => {
            let missing = names.iter().find(|name| !object.contains_key(*name))?;
            Some(format!("{} is a required property", repr_str(missing)))
        }
        Keyword::MinProperties(least) => {
            too_few(object.len(), *least, "does not have enough properties", value)
        }
        Keyword::NoOthers { names, patterns, pattern_texts } => {
            let known = |key: &&String| {
                names.contains(key) || patterns.iter().any(|regex| regex.is_match(key))
            };
            let mut others: Vec<&String> = object.keys().filter(|key| !known(key)).collect();
            others.sort();
            (!others.is_empty()).then(|| not_allowed(&others, pattern_texts))
        }
        _ => None,
    }
}

fn not_allowed(others: &[&String], patterns: &[String]) -> String {
    // So many names tell enough.
    const MOST: usize = 20;
    let quoted: Vec<String> = others.iter().take(MOST).map(|name| repr_str(name)).collect();
    let names = quoted.join(", ");
    if patterns.is_empty() {
        let verb = if others.len() == 1 { "was" } else { "were" };
        return format!("Additional properties are not allowed ({names} {verb} unexpected)");
    }
    let verb = if others.len() == 1 { "does" } else { "do" };
    let patterns: Vec<String> = patterns.iter().map(|text| repr_str(text)).collect();
    format!("{names} {verb} not match any of the regexes: {}", patterns.join(", "))
}

fn violated_by_list(keyword: &Keyword, list: &[Value], value: &Value) -> Option<String> {
    match keyword {
        Keyword::MinItems(least) => too_few(list.len(), *least, "is too short", value),
        Keyword::UniqueItems => {
            let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
            texts.sort_unstable();
            let twice = texts.windows(2).any(|pair| pair[0] == pair[1]);
            twice.then(|| format!("{} has non-unique elements", repr(value)))
        }
        _ => None,
    }
}

fn too_few(size: usize, least: usize, otherwise: &str, value: &Value) -> Option<String> {
    let words = if least == 1 { "should be non-empty" } else { otherwise };
    (size < least).then(|| format!("{} {words}", repr(value)))
}

fn violated_by_text(keyword: &Keyword, text: &str) -> Option<String> {
    let quoted = || repr_str(text);
    match keyword {
        Keyword::MinLength(least) => {
            let words = if *least == 1 { "should be non-empty" } else { "is too short" };
            (text.chars().count() < *least).then(|| format!("{} {words}", quoted()))
        }
        Keyword::MaxLength(most) => {
            (text.chars().count() > *most).then(|| format!("{} is too long", quoted()))
        }
        Keyword::Pattern(pattern) => (!pattern.regex.is_match(text))
            .then(|| format!("{} does not match {}", quoted(), repr_str(&pattern.text))),
        Keyword::Format(format) => {
            let right = match format {
                Format::Lenient => is_lenient_uuid(text),
                Format::Hyphenated => is_hyphenated_uuid(text),
            };
            (!right).then(|| format!("{} is not a 'uuid'", quoted()))
        }
        _ => None,
    }
}

fn violated_by_number(keyword: &Keyword, value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    match keyword {
        Keyword::Minimum(least) => (number < *least)
            .then(|| format!("{} is less than the minimum of {}", repr(value), limit(*least))),
        Keyword::Maximum(most) => (number > *most)
            .then(|| format!("{} is greater than the maximum of {}", repr(value), limit(*most))),
        _ => None,
    }
}

/// A limit as it was written in the schema: whole ones without a fraction.
fn limit(number: f64) -> String {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < WHOLE {
        format!("{number:.0}")
    } else {
        super::python::repr_float(number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::compile;
    use super::*;
    use serde_json::json;

    fn told(schema: Value, value: Value) -> String {
        check(&compile(&schema), &value).map(|violation| violation.sentence).unwrap_or_default()
    }

    #[test]
    fn the_sentences_are_pythons() {
        let cases = [
            (json!({"required": ["total"]}), json!({}), "'total' is a required property"),
            (json!({"type": "integer"}), json!("x"), "'x' is not of type 'integer'"),
            (
                json!({"type": ["integer", "null"]}),
                json!("x"),
                "'x' is not of type 'integer', 'null'",
            ),
            (json!({"minimum": 1}), json!(-1), "-1 is less than the minimum of 1"),
            (json!({"maximum": 8}), json!(9), "9 is greater than the maximum of 8"),
            (json!({"minLength": 1}), json!(""), "'' should be non-empty"),
            (json!({"minItems": 1}), json!([]), "[] should be non-empty"),
            (json!({"minProperties": 1}), json!({}), "{} should be non-empty"),
            (json!({"maxLength": 2}), json!("xxx"), "'xxx' is too long"),
            (
                json!({"pattern": "^CUSTOM_[A-Z0-9_]+$"}),
                json!("x"),
                "'x' does not match '^CUSTOM_[A-Z0-9_]+$'",
            ),
            (
                json!({"enum": ["none", "isolate"]}),
                json!("x"),
                "'x' is not one of ['none', 'isolate']",
            ),
            (json!({"uniqueItems": true}), json!(["a", "a"]), "['a', 'a'] has non-unique elements"),
            (json!({"format": "uuid"}), json!("x"), "'x' is not a 'uuid'"),
        ];
        for (schema, value, sentence) in cases {
            assert_eq!(told(schema, value), sentence);
        }
    }

    #[test]
    fn unexpected_properties_are_named() {
        let plain = json!({"properties": {"a": {}}, "additionalProperties": false});
        assert_eq!(
            told(plain.clone(), json!({"a": 1, "x": 1})),
            "Additional properties are not allowed ('x' was unexpected)"
        );
        assert_eq!(
            told(plain, json!({"y": 1, "x": 1})),
            "Additional properties are not allowed ('x', 'y' were unexpected)"
        );
        let patterns =
            json!({"patternProperties": {"^b$": {}, "^a$": {}}, "additionalProperties": false});
        assert_eq!(
            told(patterns.clone(), json!({"a": 1, "x": 1})),
            "'x' does not match any of the regexes: '^a$', '^b$'"
        );
        assert_eq!(
            told(patterns, json!({"y": 1, "x": 1})),
            "'x', 'y' do not match any of the regexes: '^a$', '^b$'"
        );
    }

    #[test]
    fn integers_include_whole_floats_and_exclude_booleans() {
        assert_eq!(told(json!({"type": "integer"}), json!(10.0)), "");
        assert_eq!(told(json!({"type": "integer"}), json!(true)), "True is not of type 'integer'");
        assert_eq!(told(json!({"type": "number"}), json!(true)), "True is not of type 'number'");
        assert_eq!(told(json!({"type": "integer"}), json!(10.5)), "10.5 is not of type 'integer'");
    }

    #[test]
    fn the_violation_nearest_to_the_top_is_told_with_its_place() {
        let schema = json!({
            "properties": {"deep": {"properties": {"total": {"minimum": 1}}}, "flat": {"minimum": 1}},
        });
        let violation = check(&compile(&schema), &json!({"deep": {"total": 0}, "flat": 0}))
            .expect("a violation");
        let text = violation.to_string();
        assert!(
            text.contains("Failed validating 'minimum' in schema['properties']['flat']:"),
            "{text}"
        );
        assert!(text.contains("On instance['flat']:\n    0"), "{text}");
        let violation =
            check(&compile(&schema), &json!({"deep": {"total": 0}})).expect("a violation");
        let text = violation.to_string();
        assert!(text.contains("in schema['properties']['deep']['properties']['total']:"), "{text}");
    }
}
