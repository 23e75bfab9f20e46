//! A command whose name stands elsewhere than in its body: on NATS the subject names it.

use std::cell::Cell;

use ledger::command::Command;
use serde::Deserialize;
use serde::de::value::{Error as Unread, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::media::{Form, unpacker};
use super::objects::Objects;
use crate::http::failure::Failure;

/// The command called `name` with this body. Which names there are is known to [`Command`] alone.
///
/// # Errors
/// 404 with `cause` `unknown_command` if there is none of that name, 400 if the body is not its.
pub fn read(name: &str, form: Form, body: &[u8]) -> Result<Command, Failure> {
    let known = Cell::new(false);
    let read = match form {
        Form::Json => {
            let mut from = serde_json::Deserializer::from_slice(body);
            let command =
                Command::deserialize(Named { name, body: Objects(&mut from), known: &known });
            command.and_then(|command| from.end().map(|()| command)).map_err(|e| e.to_string())
        }
        Form::MessagePack => {
            let mut from = unpacker(body);
            Command::deserialize(Named { name, body: &mut from, known: &known })
                .map_err(|e| e.to_string())
        }
    };
    read.map_err(|error| match known.get() {
        true => Failure::bad_request(format!("Malformed {name}: {error}")),
        false => unknown(name),
    })
}

fn unknown(name: &str) -> Failure {
    let why = Command::deserialize(Named {
        name,
        body: StrDeserializer::<Unread>::new(""),
        known: &Cell::new(false),
    });
    let why = why.map_or_else(|error| error.to_string(), |_| String::new());
    Failure::not_found(format!("There is no such command: {why}."))
        .field("cause", "unknown_command")
}

/// An enum whose variant is `name` and whose content is in `body`.
struct Named<'n, D> {
    name: &'n str,
    body: D,
    /// Whether there is such a variant.
    known: &'n Cell<bool>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Named<'_, D> {
    type Error = D::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_enum(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, D::Error> {
        Err(only_newtypes())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for Named<'_, D> {
    type Error = D::Error;
    type Variant = Body<D>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Body<D>), D::Error> {
        let variant =
            seed.deserialize(IntoDeserializer::<D::Error>::into_deserializer(self.name))?;
        self.known.set(true);
        Ok((variant, Body(self.body)))
    }
}

/// The content of a variant.
struct Body<D>(D);

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for Body<D> {
    type Error = D::Error;

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn unit_variant(self) -> Result<(), D::Error> {
        Err(only_newtypes())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, D::Error> {
        Err(only_newtypes())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }
}

fn only_newtypes<E: Error>() -> E {
    E::custom("a command has one body")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use ledger::command::Named as Name;

    #[test]
    fn the_name_may_stand_elsewhere() {
        let wanted = Command::CreateTrait(Name { name: "CUSTOM_A".into() });
        let body = br#"{"name": "CUSTOM_A"}"#;
        assert_eq!(read("create_trait", Form::Json, body).expect("a command"), wanted);
        let packed = rmp_serde::to_vec_named(&Name { name: "CUSTOM_A".into() }).expect("packed");
        assert_eq!(read("create_trait", Form::MessagePack, &packed).expect("a command"), wanted);
    }

    #[test]
    fn an_unknown_name_is_told_from_a_wrong_body() {
        let unknown = read("fly", Form::Json, b"{}").expect_err("unknown");
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        assert!(unknown.message.contains("claim"), "{}", unknown.message);
        let array = read("create_trait", Form::Json, b"[\"CUSTOM_A\"]").expect_err("an array");
        assert!(array.message.contains("an array where an object is expected"), "{array:?}");
        for wrong in [&b"{\"nam\": 1}"[..], b"{\"name\": \"A\"} x", b"", b"[]", b"\xff"] {
            let wrong = read("create_trait", Form::Json, wrong).expect_err("malformed");
            assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
        }
    }
}
