//! Cross-origin requests of browsers, off unless an origin is configured.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Response};

use super::payload::Payload;
use super::reply::HttpResponse;

/// Headers that a browser may always send; lower case.
const SIMPLE: &[&str] = &[
    "accept",
    "accept-language",
    "content-type",
    "cache-control",
    "content-language",
    "expires",
    "last-modified",
    "pragma",
];

const METHODS: &[&str] = &["OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "PATCH"];

/// From where cross-origin requests are answered, and with which headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    origins: Vec<String>,
    headers: Vec<String>,
}

impl Cors {
    /// From comma-separated lists of origins and of header names; none if there is no origin.
    #[must_use]
    pub fn new(origins: Option<&str>, headers: Option<&str>) -> Option<Self> {
        let list = |text: Option<&str>| {
            let parts = text.unwrap_or_default().split(',').map(str::trim);
            parts.filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let origins = list(origins);
        let headers = list(headers).iter().map(|name| name.to_lowercase()).collect();
        (!origins.is_empty()).then_some(Self { origins, headers })
    }

    /// The answer to an `OPTIONS` request: always 200 and empty, with the headers that allow the
    /// announced request if it is allowed.
    #[must_use]
    pub fn preflight(&self, request: &HeaderMap) -> HttpResponse {
        let mut response = Response::new(Payload::default());
        if let Some(allowed) = self.allowed(request) {
            let headers = response.headers_mut();
            headers.insert(VARY, HeaderValue::from_static("Origin"));
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
            self.name_origin(headers, allowed.origin);
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allowed.method.clone());
            if let Some(names) = allowed.headers {
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
            }
        }
        response
    }

    /// Adds to any other answer what lets a browser of an allowed origin read it.
    pub fn decorate(&self, request: &HeaderMap, response: &mut HttpResponse) {
        let Some(origin) = self.origin(request) else { return };
        let headers = response.headers_mut();
        let vary = match headers.get(VARY).and_then(|value| value.to_str().ok()) {
            Some(vary) => format!("{vary}, Origin"),
            None => "Origin".to_owned(),
        };
        if let Ok(vary) = HeaderValue::try_from(vary) {
            headers.insert(VARY, vary);
        }
        self.name_origin(headers, origin);
    }

    fn name_origin(&self, headers: &mut HeaderMap, origin: &HeaderValue) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }

    fn origin<'a>(&self, request: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let origin = request.get(ORIGIN)?;
        self.origins.iter().any(|known| origin == known.as_str()).then_some(origin)
    }

    fn allowed<'a>(&self, request: &'a HeaderMap) -> Option<Allowed<'a>> {
        let origin = self.origin(request)?;
        let method = request.get(ACCESS_CONTROL_REQUEST_METHOD)?;
        if !METHODS.iter().any(|known| method == known) {
            return None;
        }
        let headers = request.get(ACCESS_CONTROL_REQUEST_HEADERS);
        let names = match headers {
            Some(value) => value.to_str().ok()?,
            None => "",
        };
        let known =
            |name: &str| SIMPLE.contains(&name) || self.headers.iter().any(|own| own == name);
        let mut names =
            names.split(',').map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty());
        names.all(|name| known(&name)).then_some(Allowed { origin, method, headers })
    }
}

struct Allowed<'a> {
    origin: &'a HeaderValue,
    method: &'a HeaderValue,
    headers: Option<&'a HeaderValue>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn cors() -> Cors {
        Cors::new(Some("http://valid.example.com"), Some("OpenStack-API-Version"))
            .expect("an origin")
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn without_an_origin_it_is_off() {
        assert_eq!(Cors::new(None, Some("x")), None);
        assert_eq!(Cors::new(Some(" , "), None), None);
    }

    #[test]
    fn an_allowed_preflight_is_answered_in_full() {
        let response = cors().preflight(&headers(&[
            ("origin", "http://valid.example.com"),
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "openstack-api-version, Accept"),
        ]));
        let answer = response.headers();
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_ORIGIN], "http://valid.example.com");
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_METHODS], "GET");
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_HEADERS], "openstack-api-version, Accept");
        assert_eq!(answer[ACCESS_CONTROL_MAX_AGE], "3600");
    }

    #[test]
    fn any_other_preflight_gets_an_empty_200() {
        let valid = ("origin", "http://valid.example.com");
        let cases: [&[(&'static str, &'static str)]; 4] = [
            &[valid],
            &[("origin", "http://other.example.com"), ("access-control-request-method", "GET")],
            &[valid, ("access-control-request-method", "BREW")],
            &[
                valid,
                ("access-control-request-method", "GET"),
                ("access-control-request-headers", "x-secret"),
            ],
        ];
        for case in cases {
            assert!(cors().preflight(&headers(case)).headers().is_empty(), "{case:?}");
        }
    }

    #[test]
    fn vary_gains_the_origin() {
        let mut response = Response::new(Payload::default());
        response.headers_mut().insert(VARY, HeaderValue::from_static("openstack-api-version"));
        cors().decorate(&headers(&[("origin", "http://valid.example.com")]), &mut response);
        assert_eq!(response.headers()[VARY], "openstack-api-version, Origin");
        let mut untouched = Response::new(Payload::default());
        cors().decorate(&headers(&[("origin", "http://other.example.com")]), &mut untouched);
        assert!(untouched.headers().is_empty());
    }
}
