//! Credentials for a broker in operator mode: JSON web tokens as `nsc` would make them, signed with
//! nkeys that a test draws for itself.

use nkeys::KeyPair;
use serde_json::{Value, json};

/// An operator, an account that may use JetStream, and a user of it.
pub struct Credentials {
    /// What the broker is configured with.
    pub config: String,
    /// The user's file of credentials.
    pub file: String,
    /// The user's seed, the secret in it.
    pub seed: String,
}

impl Credentials {
    /// Makes them.
    pub fn make() -> Credentials {
        let (operator, user) = (KeyPair::new_operator(), KeyPair::new_user());
        let (account, system) = (KeyPair::new_account(), KeyPair::new_account());
        let unlimited = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
            "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1,
            "consumer": -1,
        });
        let of_account = |name: &str, key: &KeyPair, limits: &Value| {
            token(&operator, name, key, &json!({"limits": limits, "type": "account", "version": 2}))
        };
        let mut plain = unlimited.clone();
        for name in ["mem_storage", "disk_storage", "streams", "consumer"] {
            plain.as_object_mut().expect("limits").remove(name);
        }
        let claims = json!({
            "type": "operator", "version": 2, "system_account": system.public_key(),
        });
        let of_operator = token(&operator, "operator", &operator, &claims);
        let claims = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {},
        });
        let of_user = token(&account, "allocd", &user, &claims);
        let seed = user.seed().expect("a seed");
        let config = format!(
            "operator: {of_operator}\nsystem_account: {system_id}\nresolver: MEMORY\n\
             resolver_preload: {{ {id}: {jwt}, {system_id}: {system_jwt} }}\n",
            id = account.public_key(),
            jwt = of_account("cloud", &account, &unlimited),
            system_id = system.public_key(),
            system_jwt = of_account("system", &system, &plain),
        );
        let file = format!(
            "-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        Credentials { config, file, seed }
    }
}

/// A token about `subject`, signed by `issuer`.
fn token(issuer: &KeyPair, name: &str, subject: &KeyPair, nats: &Value) -> String {
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let claims = json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name,
        "sub": subject.public_key(), "nats": nats,
    });
    let text = format!(
        "{}.{}",
        base64(header.to_string().as_bytes()),
        base64(claims.to_string().as_bytes())
    );
    let signature = issuer.sign(text.as_bytes()).expect("a signature");
    format!("{text}.{}", base64(&signature))
}

/// Base64 for URLs, without padding (RFC 4648, section 5).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        for at in 0..=group.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}
