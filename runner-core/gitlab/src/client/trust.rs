//! Whom a client trusts, and what it shows of itself. TLS 1.2 at least.
//!
//! Trusted is what the system trusts, what the authorities of `tls-ca-file` signed, and a server that shows exactly a certificate of that file: many
//! installations sign themselves, with a certificate that is its own authority, which no verifier takes for that of a server.

use super::connections::TlsFiles;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why no connection can be made with these settings.
#[derive(Debug, thiserror::Error)]
pub enum BadTls {
    #[error("could not read `{path}`: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("there is no certificate in `{path}`")]
    NoCertificate { path: PathBuf },
    #[error("a client certificate needs both files, `tls-cert-file` and `tls-key-file`")]
    Half,
    #[error("`{path}` and its key do not make a client certificate")]
    NoIdentity { path: PathBuf },
    #[error("the proxy is no address")]
    Proxy,
    #[error("could not prepare connections: {why}")]
    Build { why: String },
}

/// How TLS is spoken with these files.
pub(super) fn config(files: &TlsFiles) -> Result<ClientConfig, BadTls> {
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
    let own = files.authority.as_deref().map(certificates).transpose()?.unwrap_or_default();
    let verifier = Trust { others: others(&own, &provider)?, own };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(build)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|_| BadTls::NoIdentity { path: certificate.clone() })?,
        (None, None) => builder.with_no_client_auth(),
        _ => return Err(BadTls::Half),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The system's authorities and our own; our own alone where the system has none.
fn others(own: &[CertificateDer<'static>], provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, BadTls> {
    let system = rustls_platform_verifier::Verifier::new_with_extra_roots(own.iter().cloned(), Arc::clone(provider));
    match system {
        Ok(verifier) => Ok(Arc::new(verifier)),
        Err(fault) if own.is_empty() => Err(build(fault)),
        Err(_) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(own.iter().cloned());
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
            Ok(verifier.map_err(|fault| BadTls::Build { why: fault.to_string() })?)
        }
    }
}

fn build(fault: rustls::Error) -> BadTls {
    BadTls::Build { why: fault.to_string() }
}

fn read(path: &Path) -> Result<Vec<u8>, BadTls> {
    std::fs::read(path).map_err(|source| BadTls::Read { path: path.to_owned(), source })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadTls> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?).filter_map(Result::ok).collect();
    if found.is_empty() { Err(BadTls::NoCertificate { path: path.to_owned() }) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, BadTls> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| BadTls::NoIdentity { path: path.to_owned() })
}

#[derive(Debug)]
struct Trust {
    others: Arc<dyn ServerCertVerifier>,
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.others.verify_server_cert(shown, between, name, ocsp, now) {
            Ok(verified) => Ok(verified),
            // Whoever put exactly this one into the file trusts it, whatever stands in it but the name.
            Err(_) if self.own.iter().any(|own| own == shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(fault) => Err(fault),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.others.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.others.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.others.supported_verify_schemes()
    }
}
