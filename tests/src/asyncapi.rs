//! The AsyncAPI document, and whether a message is as it says. Of JSON Schema it knows what the
//! document uses; a word that it does not know is a failure, so that nothing is passed over.

use serde_json::{Map, Value};
use yaml_rust2::{Yaml, YamlLoader};

use crate::binaries;

/// The document.
pub struct Document(Value);

impl Document {
    /// Reads `docs/asyncapi.yaml`.
    pub fn read() -> Document {
        let path = binaries::root().join("docs/asyncapi.yaml");
        let text = std::fs::read_to_string(path).expect("the document is there");
        let parsed = YamlLoader::load_from_str(&text).expect("the document is YAML");
        Document(json(&parsed[0]))
    }

    /// The addresses of all channels that have one.
    pub fn addresses(&self) -> Vec<String> {
        let channels = self.0["channels"].as_object().expect("channels");
        let addresses = channels.values().filter_map(|channel| channel["address"].as_str());
        addresses.map(str::to_owned).collect()
    }

    /// Whether a subject is one of a channel's.
    pub fn is_subject_of(&self, channel: &str, subject: &str) -> bool {
        let address = self.0["channels"][channel]["address"].as_str().expect("an address");
        let parts: Vec<&str> = address.split('.').collect();
        let found: Vec<&str> = subject.split('.').collect();
        let fits = |(part, found): (&&str, &&str)| match part.strip_prefix('{') {
            None => part == found,
            Some(name) => {
                let name = name.trim_end_matches('}');
                let allowed = &self.0["channels"][channel]["parameters"][name]["enum"];
                allowed.as_array().is_none_or(|all| all.iter().any(|it| it == found))
            }
        };
        parts.len() == found.len() && parts.iter().zip(&found).all(fits)
    }

    /// What is wrong with the headers of a message.
    pub fn headers(&self, message: &str, headers: &[(String, String)]) -> Vec<String> {
        let map: Map<String, Value> = headers
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.clone())))
            .collect();
        self.check(&self.message(message)["headers"], &Value::from(map), "headers")
    }

    /// What is wrong with the body of a message.
    pub fn payload(&self, message: &str, payload: &Value) -> Vec<String> {
        self.check(&self.message(message)["payload"], payload, message)
    }

    fn message(&self, name: &str) -> &Value {
        let message = &self.0["components"]["messages"][name];
        assert!(message.is_object(), "there is no message {name}");
        message
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        for (word, wanted) in schema.as_object().into_iter().flatten() {
            match word.as_str() {
                "$ref" => {
                    let pointer = wanted.as_str().expect("a reference").trim_start_matches('#');
                    let schema = self.0.pointer(pointer).expect("it leads somewhere");
                    wrong.extend(self.check(schema, value, at));
                }
                "type" if !is(wanted, value) => wrong.push(format!("{at} is no {wanted}: {value}")),
                "enum" if !list(wanted).contains(value) => {
                    wrong.push(format!("{at} is none of {wanted}: {value}"));
                }
                "required" => {
                    let missing = list(wanted).iter().filter_map(Value::as_str);
                    let missing = missing.filter(|name| value.get(name).is_none());
                    wrong.extend(missing.map(|name| format!("{at} lacks {name}")));
                }
                "properties" => {
                    for (name, schema) in wanted.as_object().into_iter().flatten() {
                        if let Some(value) = value.get(name) {
                            wrong.extend(self.check(schema, value, &format!("{at}.{name}")));
                        }
                    }
                }
                "additionalProperties" => {
                    for (name, more) in value.as_object().into_iter().flatten() {
                        if schema["properties"].get(name).is_some() {
                            continue;
                        }
                        match wanted {
                            Value::Bool(false) => wrong.push(format!("{at} has {name}")),
                            schema => {
                                wrong.extend(self.check(schema, more, &format!("{at}.{name}")))
                            }
                        }
                    }
                }
                "items" => {
                    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                        wrong.extend(self.check(wanted, item, &format!("{at}[{place}]")));
                    }
                }
                "format" if !has_format(wanted, value) => {
                    wrong.push(format!("{at} is no {wanted}: {value}"));
                }
                "type" | "enum" | "format" | "description" | "minLength" | "maxLength" => {}
                other => panic!("a word that the check does not know: {other}"),
            }
        }
        wrong
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is(wanted: &Value, value: &Value) -> bool {
    let one = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("a type that the check does not know: {other}"),
    };
    match wanted {
        Value::Array(all) => all.iter().filter_map(Value::as_str).any(one),
        wanted => one(wanted.as_str().expect("a type")),
    }
}

fn has_format(wanted: &Value, value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    match wanted.as_str().expect("a format") {
        "uuid" => uuid::Uuid::parse_str(text).is_ok(),
        "date-time" => text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T',
        "binary" => true,
        other => panic!("a format that the check does not know: {other}"),
    }
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Hash(map) => {
            let pairs = map.iter().map(|(key, value)| {
                (key.as_str().expect("keys are texts").to_owned(), json(value))
            });
            Value::Object(pairs.collect())
        }
        Yaml::Array(items) => items.iter().map(json).collect(),
        Yaml::String(text) => text.clone().into(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::Boolean(flag) => (*flag).into(),
        Yaml::Real(text) => text.parse::<f64>().expect("a number").into(),
        _ => Value::Null,
    }
}
