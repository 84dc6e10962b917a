//! A certificate that can change while the server runs, and the authority behind it.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What a server shows, now and after a change.
#[derive(Clone)]
pub struct Certificates {
    shown: Arc<Shown>,
    authority: Arc<Mutex<String>>,
}

struct Shown(Mutex<Arc<CertifiedKey>>);

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

impl Certificates {
    /// A new authority, and a certificate of it.
    pub fn new() -> Self {
        let (key, authority) = issued();
        Self { shown: Arc::new(Shown(Mutex::new(key))), authority: Arc::new(Mutex::new(authority)) }
    }

    /// One that signed itself, as many installations have it: the certificate is its own authority.
    pub fn self_signed() -> Self {
        let (key, authority) = self_signed();
        Self { shown: Arc::new(Shown(Mutex::new(key))), authority: Arc::new(Mutex::new(authority)) }
    }

    /// The authority as a file for `tls-ca-file`.
    pub fn authority_pem(&self) -> String {
        self.authority.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on another certificate is shown, of another authority: who trusts the old one goes away.
    pub fn change(&self) {
        let (key, authority) = issued();
        *self.shown.0.lock().unwrap_or_else(PoisonError::into_inner) = key;
        *self.authority.lock().unwrap_or_else(PoisonError::into_inner) = authority;
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider knows TLS 1.2 and 1.3");
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::clone(&self.shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

fn names() -> CertificateParams {
    CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("names of this machine")
}

fn issued() -> (Arc<CertifiedKey>, String) {
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, key()).expect("an authority signs itself");
    let own = key();
    let mut params = names();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(&own, &authority).expect("an authority signs");
    (certified(certificate.der().clone(), &own), authority.pem())
}

fn self_signed() -> (Arc<CertifiedKey>, String) {
    let own = key();
    let mut params = names();
    // As `openssl req -x509` makes it, which is what most people have.
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&own).expect("it signs itself");
    (certified(certificate.der().clone(), &own), certificate.pem())
}

fn key() -> KeyPair {
    KeyPair::generate().expect("the machine has random numbers")
}

fn certified(certificate: rustls::pki_types::CertificateDer<'static>, key: &KeyPair) -> Arc<CertifiedKey> {
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key of ours");
    let signing = aws_lc_rs::sign::any_supported_type(&private).expect("a key of a kind that the provider knows");
    Arc::new(CertifiedKey::new(vec![certificate], signing))
}
