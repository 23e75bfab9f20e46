//! The settings of NATS: where it is, TLS, and who we are there.

use std::path::{Path, PathBuf};

use clap::Args;
use projector::connection::{Connection, Login, Secret, Tls};

use super::ConfigError;
use crate::nats::Inboxes;

/// The options of NATS on the command line.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
pub struct NatsArgs {
    /// Publish events to this NATS server, such as nats://127.0.0.1:4222, and take commands and
    /// queries there; several of one cluster are separated by commas [default: none]
    #[arg(long, value_name = "URL", env = "ALLOCD_NATS", hide_env_values = true)]
    pub nats: Option<String>,
    /// Whether commands and queries are taken by NATS [default: true]
    #[arg(long, value_name = "BOOL", env = "ALLOCD_NATS_SERVICE",
          value_parser = clap::builder::BoolishValueParser::new())]
    pub nats_service: Option<bool>,
    /// Whether current usage, moves and capacity are written to key-value buckets [default: true]
    #[arg(long, value_name = "BOOL", env = "ALLOCD_NATS_BUCKETS",
          value_parser = clap::builder::BoolishValueParser::new())]
    pub nats_buckets: Option<bool>,
    /// Where answers by NATS may go: the first tokens of clients' inboxes, separated by commas. A
    /// request that wants its answer elsewhere is ignored [default: _INBOX.]
    #[arg(long, value_name = "PREFIX", env = "ALLOCD_NATS_INBOX")]
    pub nats_inbox: Option<String>,
    /// A PEM file with the certificates that NATS' own must be signed by [default: this machine's]
    #[arg(long, value_name = "FILE", env = "ALLOCD_NATS_CA")]
    pub nats_ca: Option<PathBuf>,
    /// A PEM file with our certificate, for a NATS server that asks for one
    #[arg(long, value_name = "FILE", env = "ALLOCD_NATS_CERT")]
    pub nats_cert: Option<PathBuf>,
    /// A PEM file with the key of that certificate
    #[arg(long, value_name = "FILE", env = "ALLOCD_NATS_KEY")]
    pub nats_key: Option<PathBuf>,
    /// The user to log in as
    #[arg(long, value_name = "NAME", env = "ALLOCD_NATS_USER")]
    pub nats_user: Option<String>,
    /// Its password; better given in the environment or the file than on the command line, which
    /// others can read
    #[arg(long, value_name = "PASSWORD", env = "ALLOCD_NATS_PASSWORD", hide_env_values = true)]
    pub nats_password: Option<Secret>,
    /// A token to log in with, in place of a user; likewise
    #[arg(long, value_name = "TOKEN", env = "ALLOCD_NATS_TOKEN", hide_env_values = true)]
    pub nats_token: Option<Secret>,
    /// A file with the seed of an nkey (SU...) to log in with
    #[arg(long, value_name = "FILE", env = "ALLOCD_NATS_NKEY")]
    pub nats_nkey: Option<PathBuf>,
    /// A file of credentials, a JWT and its seed, to log in with
    #[arg(long, value_name = "FILE", env = "ALLOCD_NATS_CREDS")]
    pub nats_creds: Option<PathBuf>,
}

/// What is done with NATS, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsConfig {
    /// How it is reached.
    pub connection: Connection,
    /// Whether commands and queries are taken there.
    pub service: bool,
    /// Whether the key-value buckets are written there.
    pub buckets: bool,
    /// Where answers may go.
    pub inboxes: Inboxes,
}

impl NatsArgs {
    /// These options, and those of the file where there is none.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            nats: self.nats.or(file.nats),
            nats_service: self.nats_service.or(file.nats_service),
            nats_buckets: self.nats_buckets.or(file.nats_buckets),
            nats_inbox: self.nats_inbox.or(file.nats_inbox),
            nats_ca: self.nats_ca.or(file.nats_ca),
            nats_cert: self.nats_cert.or(file.nats_cert),
            nats_key: self.nats_key.or(file.nats_key),
            nats_user: self.nats_user.or(file.nats_user),
            nats_password: self.nats_password.or(file.nats_password),
            nats_token: self.nats_token.or(file.nats_token),
            nats_nkey: self.nats_nkey.or(file.nats_nkey),
            nats_creds: self.nats_creds.or(file.nats_creds),
        }
    }

    /// What they come to; none: no NATS.
    ///
    /// # Errors
    /// If a value or a file cannot be used, or options exclude each other.
    pub fn resolve(self) -> Result<Option<NatsConfig>, ConfigError> {
        let Some(url) = self.nats.clone() else { return Ok(None) };
        let identity = match (self.nats_cert.clone(), self.nats_key.clone()) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => return Err(bad("nats-cert", "a certificate and its key go together")),
        };
        let tls = Tls { authority: self.nats_ca.clone(), identity, required: false };
        let service = self.nats_service.unwrap_or(true);
        let buckets = self.nats_buckets.unwrap_or(true);
        let inboxes = match &self.nats_inbox {
            Some(list) => Inboxes::parse(list).map_err(|reason| bad("nats-inbox", reason))?,
            None => Inboxes::default(),
        };
        let files = [&self.nats_ca, &self.nats_cert, &self.nats_key, &self.nats_creds];
        files.into_iter().flatten().try_for_each(|path| read(path).map(drop))?;
        let connection = Connection { url, tls, login: self.login()? };
        connection.servers().map_err(|error| ConfigError::Nats(error.to_string()))?;
        Ok(Some(NatsConfig { connection, service, buckets, inboxes }))
    }

    fn login(self) -> Result<Login, ConfigError> {
        let mut logins = Vec::new();
        match (self.nats_user, self.nats_password) {
            (None, None) => {}
            (Some(name), Some(password)) => logins.push(Login::User { name, password }),
            _ => return Err(bad("nats-user", "a user and a password go together")),
        }
        logins.extend(self.nats_token.map(Login::Token));
        logins.extend(self.nats_creds.map(Login::Credentials));
        if let Some(path) = self.nats_nkey {
            logins.push(Login::Nkey(Secret::from(read(&path)?.trim().to_owned())));
        }
        if logins.len() > 1 {
            let reason = "there is one way to log in: a user, a token, an nkey or credentials";
            return Err(bad("nats-user", reason));
        }
        Ok(logins.pop().unwrap_or_default())
    }
}

fn bad(name: &'static str, reason: &'static str) -> ConfigError {
    ConfigError::Together { name, reason }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn with(change: impl FnOnce(&mut NatsArgs)) -> Result<Option<NatsConfig>, ConfigError> {
        let mut args = NatsArgs { nats: Some("nats://h:1".into()), ..NatsArgs::default() };
        change(&mut args);
        args.resolve()
    }

    fn secret(text: &str) -> Option<Secret> {
        Some(Secret::from(text.to_owned()))
    }

    #[test]
    fn without_a_url_there_is_no_nats() {
        assert_eq!(NatsArgs::default().resolve().expect("fine"), None);
        assert!(with(|_| ()).expect("fine").expect("nats").service);
    }

    #[test]
    fn an_inbox_that_opens_the_ledger_is_refused_at_the_start() {
        let inbox = |text: &str| with(|args| args.nats_inbox = Some(text.into()));
        assert!(inbox("_INBOX_nova.,_INBOX.").is_ok());
        for wrong in ["alloc.v1", "$KV.", "_INBOX.,$JS", ""] {
            assert!(inbox(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn there_is_one_way_to_log_in() {
        let user = with(|args| {
            args.nats_user = Some("u".into());
            args.nats_password = secret("p");
        });
        assert!(matches!(user.expect("fine").expect("nats").connection.login, Login::User { .. }));
        assert!(with(|args| args.nats_user = Some("u".into())).is_err());
        let both = with(|args| {
            args.nats_token = secret("t");
            args.nats_creds = Some("/dev/null".into());
        });
        assert!(both.is_err());
        assert!(with(|args| args.nats_cert = Some("/dev/null".into())).is_err());
        assert!(with(|args| args.nats_ca = Some("/there/is/no/such".into())).is_err());
    }

    #[test]
    fn a_seed_is_read_from_its_file_and_shown_nowhere() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        writeln!(file, "SUSEED").expect("written");
        let config = with(|args| args.nats_nkey = Some(file.path().to_owned()));
        let config = config.expect("fine").expect("nats");
        assert_eq!(config.connection.login, Login::Nkey(Secret::from("SUSEED".to_owned())));
        assert!(!format!("{config:?}").contains("SUSEED"));
    }
}
