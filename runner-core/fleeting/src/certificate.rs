//! TLS between host and plugin, where a host asks for it: two certificates that are made for this one connection and known beforehand.
//!
//! Each side knows the one certificate that the other may show, so it is compared byte for byte, and only the proof that the other has its key is
//! left to the library. Certificates of Go plugins are P-521 and say that they are authorities, which the usual verification refuses.

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName as RawName, ServerConfig, SignatureScheme};
use std::sync::Arc;

/// The one name that both sides go by.
pub const NAME: &str = "localhost";

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    #[error("could not make a certificate: {0}")]
    Making(#[from] rcgen::Error),
    #[error("could not set up TLS: {0}")]
    SettingUp(#[from] rustls::Error),
    #[error("the host's certificate cannot be read: {0}")]
    Reading(String),
}

/// A certificate for one connection, and its key, which never leaves the process.
pub struct Identity {
    certificate: CertificateDer<'static>,
    pem: String,
    key: Vec<u8>,
}

impl Identity {
    /// As go-plugin makes them (observed F.3.5), so that every peer takes it.
    /// # Errors
    /// There is no randomness to be had.
    pub fn generate() -> Result<Self, TlsFault> {
        let mut params = CertificateParams::new(vec![NAME.to_owned()])?;
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "HashiCorp");
        name.push(DnType::CommonName, NAME);
        params.distinguished_name = name;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyAgreement,
            KeyUsagePurpose::KeyCertSign,
        ];
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P521_SHA512)?;
        let certificate = params.self_signed(&key)?;
        Ok(Self { pem: certificate.pem(), certificate: certificate.der().clone(), key: key.serialize_der() })
    }

    pub fn pem(&self) -> &str {
        &self.pem
    }

    pub fn der(&self) -> &[u8] {
        &self.certificate
    }

    /// For the host. `plugin`: the certificate of the handshake line, in DER.
    /// # Errors
    /// The library refuses our own certificate.
    pub fn client(&self, plugin: Vec<u8>) -> Result<ClientConfig, TlsFault> {
        let provider = provider();
        let only = Only { certificate: CertificateDer::from(plugin), algorithms: provider.signature_verification_algorithms };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(only))
            .with_client_auth_cert(vec![self.certificate.clone()], self.private_key())?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }

    /// For a plugin. `host`: the certificate of its environment, in PEM.
    /// # Errors
    /// That is none.
    pub fn server(&self, host: &str) -> Result<ServerConfig, TlsFault> {
        let certificate = CertificateDer::from_pem_slice(host.as_bytes()).map_err(|error| TlsFault::Reading(error.to_string()))?;
        let provider = provider();
        let only = Only { certificate, algorithms: provider.signature_verification_algorithms };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(only))
            .with_single_cert(vec![self.certificate.clone()], self.private_key())?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }

    fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Takes this one certificate and no other.
#[derive(Debug)]
struct Only {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Only {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        let known = shown.as_ref() == self.certificate.as_ref();
        known.then_some(()).ok_or(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }
}

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Only {
    fn root_hint_subjects(&self) -> &[RawName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    /// Whether each side takes the other: the plugin expects `expected`, and the host has pinned `pinned`.
    async fn meet(host: &Identity, expected: &Identity, plugin: &Identity, pinned: &Identity) -> (bool, bool) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let acceptor = TlsAcceptor::from(Arc::new(plugin.server(expected.pem()).unwrap()));
        let connector = TlsConnector::from(Arc::new(host.client(pinned.der().to_vec()).unwrap()));
        let connecting = async {
            let mut stream = connector.connect(ServerName::try_from(NAME).unwrap(), near).await?;
            // In TLS 1.3 a host is refused only after its own part is done.
            stream.read_u8().await
        };
        let accepting = async {
            let mut stream = acceptor.accept(far).await?;
            stream.write_u8(1).await?;
            stream.flush().await
        };
        let (connected, accepted) = tokio::join!(connecting, accepting);
        (connected.is_ok(), accepted.is_ok())
    }

    #[tokio::test]
    async fn flh_23_a_host_takes_no_plugin_but_its_own() {
        let [host, plugin, other] = [(); 3].map(|()| Identity::generate().unwrap());
        assert_eq!(meet(&host, &host, &plugin, &plugin).await, (true, true));
        assert_eq!(meet(&host, &host, &other, &plugin).await, (false, false));
    }

    #[tokio::test]
    async fn fls_07_a_plugin_takes_no_host_but_its_own() {
        let [host, plugin, other] = [(); 3].map(|()| Identity::generate().unwrap());
        assert_eq!(meet(&other, &host, &plugin, &plugin).await, (false, false));
        assert!(plugin.server("no certificate").is_err());
    }
}
