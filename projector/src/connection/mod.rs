//! How NATS is reached: servers, TLS, and who we are. All that talks to NATS connects this way.

mod secret;

pub use secret::Secret;

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const PING_EVERY: Duration = Duration::from_secs(5);

/// How NATS is reached. `Debug` and `Display` show no secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// The servers, such as `nats://127.0.0.1:4222`; several are separated by commas.
    pub url: String,
    /// TLS.
    pub tls: Tls,
    /// Who we are.
    pub login: Login,
}

/// How TLS is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificates (PEM) that the server's must be signed by; none: those of this machine.
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key (PEM), for servers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether a connection without TLS is refused. A `tls://` URL asks for it as well.
    pub required: bool,
}

/// Who we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// Whoever the URL says, or nobody.
    #[default]
    Anonymous,
    /// A user with a password.
    User {
        /// The name.
        name: String,
        /// The password.
        password: Secret,
    },
    /// A token.
    Token(Secret),
    /// The seed of an nkey (`SU...`).
    Nkey(Secret),
    /// A file of credentials (a JWT and its seed), as `nsc` writes it.
    Credentials(PathBuf),
}

/// Why a connection cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// A URL that is none.
    #[error("{url} is no URL of a NATS server: {error}")]
    Url {
        /// The URL, without what is secret in it.
        url: String,
        /// What is wrong.
        error: String,
    },
    /// A file that cannot be used.
    #[error("{} cannot be used: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl Connection {
    /// Connects as nobody, or as whom the URL says.
    pub fn to(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// The servers.
    ///
    /// # Errors
    /// [`ConnectionError::Url`].
    pub fn servers(&self) -> Result<Vec<ServerAddr>, ConnectionError> {
        let parsed = self.url.split(',').map(str::trim).map(|url| {
            url.parse().map_err(|error: std::io::Error| ConnectionError::Url {
                url: without_secrets(url),
                error: error.to_string(),
            })
        });
        parsed.collect()
    }

    /// The client's options, named `name` in the server's lists of connections.
    ///
    /// # Errors
    /// [`ConnectionError::File`] if the file of credentials cannot be used.
    pub async fn options(&self, name: &str) -> Result<ConnectOptions, ConnectionError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_EVERY);
        if self.tls.required {
            options = options.require_tls(true);
        }
        if let Some(authority) = &self.tls.authority {
            options = options.add_root_certificates(authority.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.tls.identity {
            options =
                options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
        }
        Ok(match &self.login {
            Login::Anonymous => as_the_url_says(options, &self.servers()?),
            Login::User { name, password } => {
                options.user_and_password(name.clone(), password.reveal().to_owned())
            }
            Login::Token(token) => options.token(token.reveal().to_owned()),
            Login::Nkey(seed) => options.nkey(seed.reveal().trim().to_owned()),
            Login::Credentials(path) => options
                .credentials_file(path)
                .await
                .map_err(|error| ConnectionError::File { path: path.clone(), error })?,
        })
    }
}

/// The client library leaves the user and the password of a URL alone; a user without a password is
/// a token.
fn as_the_url_says(options: ConnectOptions, servers: &[ServerAddr]) -> ConnectOptions {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let named = servers.iter().find_map(|server| Some((server.username()?, server.password())));
    match named {
        Some((name, Some(password))) => options.user_and_password(decoded(name), decoded(password)),
        Some((token, None)) => options.token(decoded(token)),
        None => options,
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.url.split(',').map(without_secrets).collect();
        f.write_str(&shown.join(","))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("url", &self.to_string())
            .field("tls", &self.tls)
            .field("login", &self.login)
            .finish()
    }
}

/// A URL without the user, password or token in it.
fn without_secrets(url: &str) -> String {
    let url = url.trim();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_shown() {
        let mut connection = Connection::to("nats://me:hush@a:4222, tls://hush@b");
        assert_eq!(connection.to_string(), "nats://a:4222,tls://b");
        for login in [
            Login::User { name: "me".into(), password: Secret::from("hush".to_owned()) },
            Login::Token(Secret::from("hush".to_owned())),
            Login::Nkey(Secret::from("hush".to_owned())),
        ] {
            connection.login = login;
            assert!(!format!("{connection:?}").contains("hush"), "{connection:?}");
        }
        let error = Connection::to("nats://me:hush@[").servers().expect_err("no URL").to_string();
        assert!(!error.contains("hush"), "{error}");
    }

    #[test]
    fn several_servers_are_separated_by_commas() {
        let servers = Connection::to("nats://a:1, nats://b:2").servers().expect("two");
        assert_eq!(servers.len(), 2);
    }
}
