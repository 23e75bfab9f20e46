//! A request that has passed the checks that come before its handler.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use http::HeaderMap;
use smallvec::SmallVec;

use super::auth::Identity;
use super::idempotency;
use super::microversion::Version;
use crate::past::Past;

/// The variable parts of a path, in order.
pub type Params = SmallVec<[String; 2]>;

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By HTTP from this address.
    Http(IpAddr),
    /// By NATS, which does not tell addresses.
    Nats,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(address) => address.fmt(f),
            Self::Nats => f.write_str("nats"),
        }
    }
}

/// What a handler gets.
#[derive(Debug)]
pub struct Request {
    /// The microversion in effect.
    pub version: Version,
    /// Who is calling.
    pub identity: Identity,
    /// The variable parts of the path, decoded.
    pub params: Params,
    /// The query string as sent, without the question mark.
    pub query: String,
    /// The body.
    pub body: Bytes,
    /// The headers.
    pub headers: HeaderMap,
    /// Our id of the request.
    pub id: String,
    /// OpenStack's global request id, if the client sent one.
    pub global_id: Option<String>,
    /// Where it came from.
    pub origin: Origin,
    /// The state of the past that it is to be answered from; none: the present one.
    pub past: Option<Past>,
}

impl Request {
    /// Whether it names a command id, so that it has one outcome for good.
    #[must_use]
    pub fn is_named(&self) -> bool {
        idempotency::is_named(&self.headers)
    }

    /// The n-th variable part of the path. The router fills in as many as the route has; what is
    /// not there reads as empty, and no such thing is ever found.
    #[must_use]
    pub fn param(&self, n: usize) -> &str {
        self.params.get(n).map_or("", String::as_str)
    }
}
