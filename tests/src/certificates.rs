//! Certificates of an authority that a test makes for itself.

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// An authority, and what it signed, in PEM.
pub struct Certificates {
    /// The authority's certificate.
    pub authority: String,
    /// A server's certificate for 127.0.0.1.
    pub server: String,
    /// Its key.
    pub server_key: String,
    /// A client's certificate.
    pub client: String,
    /// Its key.
    pub client_key: String,
}

impl Certificates {
    /// Makes them.
    pub fn make() -> Certificates {
        let key = KeyPair::generate().expect("a key");
        let mut params = params(&[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        let (server, server_key) =
            signed(&issuer, &["127.0.0.1", "localhost"], ExtendedKeyUsagePurpose::ServerAuth);
        let (client, client_key) =
            signed(&issuer, &["allocd.test"], ExtendedKeyUsagePurpose::ClientAuth);
        Certificates { authority, server, server_key, client, client_key }
    }
}

fn signed(
    issuer: &Issuer<'_, KeyPair>,
    names: &[&str],
    purpose: ExtendedKeyUsagePurpose,
) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = params(names);
    params.extended_key_usages = vec![purpose];
    (params.signed_by(&key, issuer).expect("a certificate").pem(), key.serialize_pem())
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    CertificateParams::new(names).expect("names of hosts")
}
