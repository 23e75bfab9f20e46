//! A small blocking client of the Placement API.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;

/// The newest microversion, sent unless a test says otherwise.
pub const NEWEST: &str = "1.39";

/// How long one request may take, so that nothing hangs for ever.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long a read is sent again that the server is too busy for (503).
const BUSY: Duration = Duration::from_secs(120);

/// The largest answer that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body as JSON; null if it is empty. Panics if it is something else.
    pub fn json(&self) -> Value {
        if self.bytes.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The first header of a name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The message of the first error, as Placement's clients read it; empty if there is none.
    pub fn detail(&self) -> String {
        self.json()["errors"][0]["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// Itself, if it has this status; otherwise panics with the body.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A client with connections of its own, kept open. Cloning shares them.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    base: String,
    headers: Vec<(String, String)>,
}

impl Client {
    /// An administrator's client of the server at `base`, with the newest microversion.
    pub fn new(base: &str) -> Client {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_idle_connections_per_host(1)
            .proxy(None)
            .build()
            .into();
        let client = Client { agent, base: base.to_owned(), headers: Vec::new() };
        client.with("x-auth-token", "admin").with("accept", "application/json").microversion(NEWEST)
    }

    /// The same client with another microversion; an empty one sends none, which means 1.0.
    pub fn microversion(&self, version: &str) -> Client {
        if version.is_empty() {
            return self.without("openstack-api-version");
        }
        self.with("openstack-api-version", &format!("placement {version}"))
    }

    /// The same client with a global request id, as Nova sends one through all calls of an action.
    pub fn request_id(&self, id: &str) -> Client {
        self.with("x-openstack-request-id", id)
    }

    /// The same client with a header (its name in lower case) set.
    pub fn with(&self, name: &str, value: &str) -> Client {
        let mut client = self.without(name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// The same client without a header.
    pub fn without(&self, name: &str) -> Client {
        let mut client = self.clone();
        client.headers.retain(|(key, _)| key != name);
        client
    }

    /// Send a request. An error means that the outcome is not known: no answer came.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<Answer, ureq::Error> {
        let mut request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let answer = match body {
            Some(bytes) => {
                if !self.headers.iter().any(|(name, _)| name == "content-type") {
                    request = request.header("content-type", "application/json");
                }
                self.agent.run(request.body(bytes).map_err(ureq::Error::from)?)?
            }
            None => self.agent.run(request.body(()).map_err(ureq::Error::from)?)?,
        };
        read(answer)
    }

    /// GET.
    pub fn get(&self, path: &str) -> Result<Answer, ureq::Error> {
        self.send("GET", path, None)
    }

    /// PUT with JSON.
    pub fn put(&self, path: &str, body: &Value) -> Result<Answer, ureq::Error> {
        self.send("PUT", path, Some(body.to_string().as_bytes()))
    }

    /// POST with JSON.
    pub fn post(&self, path: &str, body: &Value) -> Result<Answer, ureq::Error> {
        self.send("POST", path, Some(body.to_string().as_bytes()))
    }

    /// DELETE.
    pub fn delete(&self, path: &str) -> Result<Answer, ureq::Error> {
        self.send("DELETE", path, None)
    }

    /// GET that must answer 200 with JSON. A server that is too busy is asked again: on a crowded
    /// machine a view can lag.
    #[track_caller]
    pub fn read(&self, path: &str) -> Value {
        let deadline = Instant::now() + BUSY;
        loop {
            let answer = self.get(path).expect("the server answers");
            if answer.status != 503 || Instant::now() >= deadline {
                return answer.expect(200).json();
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn read(answer: ureq::http::Response<ureq::Body>) -> Result<Answer, ureq::Error> {
    let (parts, mut body) = answer.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let bytes = body.with_config().limit(LARGEST).read_to_vec()?;
    Ok(Answer { status: parts.status.as_u16(), headers, bytes })
}
