//! JSON or MessagePack, as the client says.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::objects::Objects;
use crate::http::failure::Failure;
use crate::http::reply::Reply;

type Unpacker<'a> = rmp_serde::Deserializer<
    rmp_serde::decode::ReadRefReader<'a, [u8]>,
    rmp_serde::config::HumanReadableConfig<rmp_serde::config::DefaultConfig>,
>;

/// The content type of MessagePack.
pub const MESSAGEPACK: &str = "application/msgpack";

/// A form of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/json`.
    Json,
    /// `application/msgpack`, also known as `application/vnd.msgpack` and `application/x-msgpack`.
    MessagePack,
}

impl Form {
    /// The form of a request's body; JSON if the client does not say.
    ///
    /// # Errors
    /// 415.
    pub fn of_body(headers: &HeaderMap) -> Result<Self, Failure> {
        let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let Some(given) = given else { return Ok(Self::Json) };
        let essence = given.split(';').next().unwrap_or_default().trim();
        Self::named(essence).ok_or_else(|| {
            let mut failure = Failure::unsupported_media_type(Some(essence), given);
            failure.message = format!(
                "The media type {essence} is not supported, use application/json or {MESSAGEPACK}"
            );
            failure
        })
    }

    /// The form of the answer: MessagePack if the client accepts that first, else JSON.
    #[must_use]
    pub fn of_answer(headers: &HeaderMap) -> Self {
        let accepted =
            headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut named =
            accepted.split(',').filter_map(|range| Self::named(range.split(';').next()?.trim()));
        named.next().unwrap_or(Self::Json)
    }

    /// The form's content type.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MessagePack => MESSAGEPACK,
        }
    }

    fn named(essence: &str) -> Option<Self> {
        match essence.to_ascii_lowercase().as_str() {
            "application/json" => Some(Self::Json),
            MESSAGEPACK | "application/vnd.msgpack" | "application/x-msgpack" => {
                Some(Self::MessagePack)
            }
            _ => None,
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 400.
    pub fn read<T: DeserializeOwned>(self, body: &[u8]) -> Result<T, Failure> {
        match self {
            Self::Json => parse(body)
                .map_err(|error| Failure::bad_request(format!("Malformed JSON: {error}"))),
            Self::MessagePack => unpack(body)
                .map_err(|error| Failure::bad_request(format!("Malformed MessagePack: {error}"))),
        }
    }

    /// Writes an answer.
    ///
    /// # Errors
    /// 500 if the value cannot be written, which types of this crate always can.
    pub fn reply<T: Serialize>(self, value: &T) -> Result<Reply, Failure> {
        match self {
            Self::Json => Reply::json(value),
            Self::MessagePack => {
                let body = pack(value).map_err(|error| Failure::internal(error.to_string()))?;
                Ok(Reply { content_type: MESSAGEPACK, ..Reply::bytes(body) })
            }
        }
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, serde_json::Error> {
    let mut from = serde_json::Deserializer::from_slice(body);
    let value = T::deserialize(Objects(&mut from))?;
    from.end().map(|()| value)
}

/// Values look the same in both forms: a uuid is a text in MessagePack too.
fn unpack<T: DeserializeOwned>(body: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    T::deserialize(&mut unpacker(body))
}

/// What reads MessagePack.
pub(super) fn unpacker(body: &[u8]) -> Unpacker<'_> {
    rmp_serde::Deserializer::from_read_ref(body).with_human_readable()
}

fn pack<T: Serialize>(value: &T) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    let mut body = Vec::new();
    let mut to = rmp_serde::Serializer::new(&mut body).with_struct_map().with_human_readable();
    value.serialize(&mut to)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: http::HeaderName, value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn forms_are_named_by_content_type() {
        assert_eq!(Form::of_body(&HeaderMap::new()).ok(), Some(Form::Json));
        let packed = headers(CONTENT_TYPE, "application/vnd.msgpack; x=y");
        assert_eq!(Form::of_body(&packed).ok(), Some(Form::MessagePack));
        assert!(Form::of_body(&headers(CONTENT_TYPE, "text/plain")).is_err());
        assert_eq!(
            Form::of_answer(&headers(ACCEPT, "application/msgpack, application/json")),
            Form::MessagePack
        );
        assert_eq!(Form::of_answer(&headers(ACCEPT, "*/*")), Form::Json);
    }

    #[test]
    fn both_forms_are_read() {
        let value: Vec<u32> = Form::Json.read(b"[1, 2]").expect("JSON");
        let packed = rmp_serde::to_vec(&value).expect("MessagePack");
        assert_eq!(Form::MessagePack.read::<Vec<u32>>(&packed).expect("MessagePack"), value);
        assert!(Form::MessagePack.read::<Vec<u32>>(b"\xc1").is_err());
    }
}
