//! The bodies that write allocations, at any microversion, as the ledger's consumer writes.
//!
//! A body of today's form is read straight into its types. Whatever that reader does not like is
//! read again the slow way, against the schema, which finds out what is wrong with it, or that
//! nothing is.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use ledger::amounts::{Holding, Resources};
use ledger::command::{ConsumerWrite, GenerationCheck};
use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::limits::{CONSUMERS, GROUP_BYTES};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{lookup, numbers};
use crate::http::failure::Failure;
use crate::http::microversion::{
    ALLOCATIONS_BY_PROVIDER, CONSUMER_GENERATIONS, CONSUMER_TYPES, MAPPINGS, PROJECT_AND_USER,
    Version,
};
use crate::schema::{self, Schema, is_lenient_uuid};

/// The project and the user of consumers written before 1.8.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Reads the body of `PUT /allocations/{consumer}`.
///
/// # Errors
/// 400.
pub fn put(
    body: &[u8],
    consumer: ConsumerUuid,
    version: Version,
) -> Result<ConsumerWrite, Failure> {
    if let Some(form) = fast::<Form<'_>>(body, version)
        && form.is_valid(version)
    {
        return Ok(form.into_write(consumer));
    }
    let value = schema::parse_checked(body, schema::allocations::REPLACE.at(version))?;
    write_of(&value, consumer, version)
}

/// Reads the body of `POST /allocations`.
///
/// # Errors
/// 400.
pub fn post(body: &[u8], version: Version) -> Result<Vec<ConsumerWrite>, Failure> {
    // A long body is skimmed first: what the ledger would refuse for its size need not be read.
    if body.len() > GROUP_BYTES / 2 && members(body) > CONSUMERS {
        return Err(Failure::too_large(format!(
            "Too large: consumers of one write; the limit is {CONSUMERS}."
        ))
        .field("cause", "too_large"));
    }
    if let Some(forms) = fast::<BTreeMap<Canonical, Form<'_>>>(body, version)
        && !forms.is_empty()
        && forms.values().all(|form| form.is_valid(version))
    {
        return Ok(forms
            .into_iter()
            .map(|(key, form)| form.into_write(ConsumerUuid(key.0)))
            .collect());
    }
    let schema: &Schema = schema::allocations::MANAGE.at(version);
    writes_of(&schema::parse_checked(body, schema)?, version)
}

/// The writes of an object of consumers that a schema has checked.
///
/// # Errors
/// 400 for keys that are no uuids although they look like ones, and for providers that cannot
/// exist.
pub fn writes_of(value: &Value, version: Version) -> Result<Vec<ConsumerWrite>, Failure> {
    let entries = value.as_object().into_iter().flatten();
    let mut writes: Vec<ConsumerWrite> = Vec::new();
    for (key, value) in entries {
        let canonical = schema::canonical_uuid(key).and_then(|text| lookup::consumer_uuid(&text));
        let consumer = canonical.ok_or_else(|| malformed_consumer(key))?;
        writes.push(write_of(value, consumer, version)?);
    }
    Ok(writes)
}

/// 400 for a consumer that is no uuid.
#[must_use]
pub fn malformed_consumer(text: &str) -> Failure {
    Failure::bad_request(format!("Malformed consumer_uuid: {text}"))
}

/// How many members an object has, counted without reading them, and no further than there may be
/// consumers. What is wrong with the body is for the reader that follows.
fn members(body: &[u8]) -> usize {
    struct Count<'c>(&'c mut usize);
    impl<'de> Visitor<'de> for Count<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while *self.0 <= CONSUMERS && map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                *self.0 += 1;
            }
            Ok(())
        }
    }
    let mut count = 0;
    let _ = serde_json::Deserializer::from_slice(body).deserialize_map(Count(&mut count));
    count
}

fn fast<'de, T: Deserialize<'de>>(body: &'de [u8], version: Version) -> Option<T> {
    if version < ALLOCATIONS_BY_PROVIDER {
        return None;
    }
    serde_json::from_slice(body).ok()
}

/// A uuid in its canonical form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Canonical(uuid::Uuid);

impl<'de> Deserialize<'de> for Canonical {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        lookup::canonical(&text).map(Self).ok_or_else(|| serde::de::Error::custom("not canonical"))
    }
}

/// One consumer's allocations as they are sent from 1.12 on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form<'a> {
    allocations: BTreeMap<Canonical, OnProvider>,
    #[serde(borrow)]
    project_id: Cow<'a, str>,
    #[serde(borrow)]
    user_id: Cow<'a, str>,
    #[serde(default, deserialize_with = "present")]
    consumer_generation: Option<Option<u32>>,
    #[serde(default, borrow)]
    mappings: Option<BTreeMap<Cow<'a, str>, Vec<Cow<'a, str>>>>,
    #[serde(default, borrow)]
    consumer_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnProvider {
    resources: Resources,
    /// Accepted and ignored.
    #[serde(default, rename = "generation")]
    _generation: Option<i64>,
}

/// Tells `null` from absent.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::<u32>::deserialize(from).map(Some)
}

impl Form<'_> {
    /// Whether it is valid beyond doubt. What is not may still be.
    fn is_valid(&self, version: Version) -> bool {
        let generations = version >= CONSUMER_GENERATIONS;
        let mapped = self.mappings.as_ref();
        self.consumer_generation.is_some() == generations
            && self.consumer_type.is_some() == (version >= CONSUMER_TYPES)
            && (mapped.is_none() || version >= MAPPINGS)
            && (generations || !self.allocations.is_empty())
            && is_id(&self.project_id)
            && is_id(&self.user_id)
            && self.consumer_type.as_deref().is_none_or(|name| is_id(name) && is_upper(name))
            && self.allocations.values().all(|on| is_amounts(&on.resources))
            && mapped.is_none_or(is_mapping)
    }

    fn into_write(self, consumer: ConsumerUuid) -> ConsumerWrite {
        let holdings = self.allocations.into_iter();
        ConsumerWrite {
            consumer,
            allocations: holdings
                .map(|(provider, on)| (ProviderUuid(provider.0), on.resources))
                .collect(),
            project_id: self.project_id.into_owned(),
            user_id: self.user_id.into_owned(),
            consumer_type: self.consumer_type.map(Cow::into_owned),
            generation: self
                .consumer_generation
                .map_or(GenerationCheck::Unchecked, GenerationCheck::Is),
        }
    }
}

fn is_id(text: &str) -> bool {
    const LONGEST: usize = 255;
    !text.is_empty() && text.len() <= LONGEST
}

fn is_upper(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

fn is_amounts(resources: &Resources) -> bool {
    !resources.is_empty() && resources.iter().all(|(class, amount)| *amount >= 1 && is_upper(class))
}

fn is_mapping(mappings: &BTreeMap<Cow<'_, str>, Vec<Cow<'_, str>>>) -> bool {
    const LONGEST: usize = 64;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let is_suffix = |text: &str| text.len() <= LONGEST && text.bytes().all(allowed);
    let entry = |(suffix, providers): (&Cow<'_, str>, &Vec<Cow<'_, str>>)| {
        is_suffix(suffix)
            && !providers.is_empty()
            && providers.iter().all(|uuid| is_lenient_uuid(uuid))
    };
    !mappings.is_empty() && mappings.iter().all(entry)
}

/// The write of a value that a schema has checked.
fn write_of(
    value: &Value,
    consumer: ConsumerUuid,
    version: Version,
) -> Result<ConsumerWrite, Failure> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let owner = |name: &str| match version >= PROJECT_AND_USER {
        true => text(name).unwrap_or_default(),
        false => NOBODY.to_owned(),
    };
    let generation = match value.get("consumer_generation") {
        None => GenerationCheck::Unchecked,
        Some(Value::Null) => GenerationCheck::Is(None),
        Some(number) => GenerationCheck::Is(Some(numbers::generation(number))),
    };
    let allocations = &value["allocations"];
    Ok(ConsumerWrite {
        consumer,
        allocations: if allocations.is_array() {
            listed(allocations)?
        } else {
            by_provider(allocations)?
        },
        project_id: owner("project_id"),
        user_id: owner("user_id"),
        consumer_type: text("consumer_type"),
        generation,
    })
}

/// The form before 1.12. Of a provider named twice the last entry counts.
fn listed(allocations: &Value) -> Result<Holding, Failure> {
    let entries = allocations.as_array().into_iter().flatten();
    entries
        .map(|entry| on(entry["resource_provider"]["uuid"].as_str().unwrap_or_default(), entry))
        .collect()
}

fn by_provider(allocations: &Value) -> Result<Holding, Failure> {
    allocations.as_object().into_iter().flatten().map(|(uuid, entry)| on(uuid, entry)).collect()
}

fn on(uuid: &str, entry: &Value) -> Result<(ProviderUuid, Resources), Failure> {
    // A spelling that is not canonical names no provider.
    let provider = lookup::provider_uuid(uuid).ok_or_else(|| {
        Failure::bad_request(format!(
            "Allocation for resource provider '{uuid}' that does not exist."
        ))
    })?;
    let resources = entry["resources"].as_object().into_iter().flatten();
    let resources = resources.map(|(class, amount)| (class.clone(), numbers::unsigned(amount)));
    Ok((provider, resources.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::{MAX, MIN};
    use serde_json::json;

    const PROVIDER: &str = "0123abcd-0123-abcd-0123-abcd0123abcd";

    fn consumer() -> ConsumerUuid {
        ConsumerUuid(uuid::Uuid::from_u128(7))
    }

    fn full() -> Value {
        json!({
            "allocations": {PROVIDER: {"resources": {"VCPU": 2, "DISK_GB": 5}, "generation": 3}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": null,
            "mappings": {"": [PROVIDER], "_A": [PROVIDER]},
            "consumer_type": "INSTANCE",
        })
    }

    fn read(body: &Value, version: Version) -> Result<ConsumerWrite, String> {
        put(body.to_string().as_bytes(), consumer(), version).map_err(|failure| failure.message)
    }

    #[test]
    fn too_many_consumers_are_counted_and_not_read() {
        let body = |count: u128| {
            let one = |n| format!("\"{}\": {{\"a\": [1, 2, 3]}}", uuid::Uuid::from_u128(n));
            // Its end is missing, which nobody gets to see.
            format!("{{{}", (0..count).map(one).collect::<Vec<_>>().join(","))
        };
        let few = body(3);
        assert_eq!(members(few.as_bytes()), 3);
        let many = body(CONSUMERS as u128 + 5);
        assert_eq!(members(many.as_bytes()), CONSUMERS + 1);
        assert_eq!(members(b"[1, 2]"), 0);
        let padded = format!("{many}{}", " ".repeat(GROUP_BYTES));
        let refused = post(padded.as_bytes(), MAX).expect_err("too many");
        assert_eq!(refused.status, http::StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn both_readers_read_the_same() {
        let body = full();
        let text = body.to_string();
        let form = fast::<Form<'_>>(text.as_bytes(), MAX).expect("today's form");
        assert!(form.is_valid(MAX));
        let slow = write_of(&body, consumer(), MAX).expect("a write");
        assert_eq!(form.into_write(consumer()), slow);
        assert_eq!(slow.generation, GenerationCheck::Is(None));
        assert_eq!(slow.consumer_type.as_deref(), Some("INSTANCE"));
    }

    #[test]
    fn what_the_fast_reader_does_not_like_is_told_by_the_schema() {
        let mut body = full();
        body["consumer_type"] = json!("instance");
        let told = read(&body, MAX).expect_err("lower case");
        assert!(told.contains("'instance' does not match '^[A-Z0-9_]+$'"), "{told}");
        let mut body = full();
        body["allocations"][PROVIDER]["resources"]["VCPU"] = json!(0);
        let told = read(&body, MAX).expect_err("an amount of 0");
        assert!(told.contains("0 is less than the minimum of 1"), "{told}");
        let told = read(&full(), CONSUMER_GENERATIONS).expect_err("too new a form");
        assert!(told.contains("('consumer_type', 'mappings' were unexpected)"), "{told}");
    }

    #[test]
    fn whole_floats_are_amounts_too() {
        let mut body = full();
        body["allocations"][PROVIDER]["resources"]["VCPU"] = json!(2.0);
        let provider = lookup::provider_uuid(PROVIDER).expect("a uuid");
        assert_eq!(read(&body, MAX).expect("a write").allocations[&provider]["VCPU"], 2);
    }

    #[test]
    fn the_oldest_form_is_a_list_without_owner() {
        let entry = |amount: u32| json!({"resource_provider": {"uuid": PROVIDER}, "resources": {"VCPU": amount}});
        let write = read(&json!({"allocations": [entry(1), entry(2)]}), MIN).expect("a write");
        assert_eq!(write.project_id, NOBODY);
        assert_eq!(write.generation, GenerationCheck::Unchecked);
        let provider = lookup::provider_uuid(PROVIDER).expect("a uuid");
        assert_eq!(write.allocations[&provider]["VCPU"], 2);
    }

    #[test]
    fn providers_in_another_spelling_do_not_exist() {
        let mut body = full();
        body["allocations"] = json!({PROVIDER.to_uppercase(): {"resources": {"VCPU": 1}}});
        let told = read(&body, MAX).expect_err("upper case");
        assert!(told.ends_with("that does not exist."), "{told}");
    }
}
