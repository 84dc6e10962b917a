//! The door to reqwest: connections with the certificates, proxies and times of the settings. Files that change are read again.

use super::trust::{self, BadTls};
use super::{ClientSettings, Timeouts};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// Files of certificates, as a runner's entry names them. What is not named is looked for in `directory` under the name of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// `tls-ca-file`, else `HOST.crt`. Trusted beside what the system trusts.
    pub authority: Option<PathBuf>,
    /// `tls-cert-file`, else `HOST.auth.crt`.
    pub certificate: Option<PathBuf>,
    /// `tls-key-file`, else `HOST.auth.key`.
    pub key: Option<PathBuf>,
    /// `certs` beside the configuration.
    pub directory: Option<PathBuf>,
}

impl TlsFiles {
    /// With what lies in the directory for this host.
    pub fn for_host(&self, host: &str) -> Self {
        let found = |named: &Option<PathBuf>, ending: &str| {
            named.clone().or_else(|| {
                self.directory.as_ref().map(|directory| directory.join(format!("{host}.{ending}"))).filter(|path| path.is_file())
            })
        };
        Self {
            authority: found(&self.authority, "crt"),
            certificate: found(&self.certificate, "auth.crt"),
            key: found(&self.key, "auth.key"),
            directory: self.directory.clone(),
        }
    }

    fn changed(&self) -> Vec<Option<SystemTime>> {
        [&self.authority, &self.certificate, &self.key]
            .map(|path| fs::metadata(path.as_ref()?).and_then(|file| file.modified()).ok())
            .to_vec()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxy {
    /// As `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
    Environment,
    None,
    Address(String),
}

/// Connections that are kept, and made anew when they are old or a file has changed.
pub(super) struct Connections {
    tls: TlsFiles,
    proxy: Proxy,
    timeouts: Timeouts,
    user_agent: String,
    is_tls: bool,
    host: String,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    client: reqwest::Client,
    made: Instant,
    changed: Vec<Option<SystemTime>>,
}

impl Connections {
    pub fn new(settings: &ClientSettings) -> Self {
        Self {
            tls: settings.tls.clone(),
            proxy: settings.proxy.clone(),
            timeouts: settings.timeouts,
            user_agent: settings.info.user_agent(),
            is_tls: settings.url.is_tls() || settings.cells.values().any(crate::ServerUrl::is_tls),
            host: settings.url.host().to_owned(),
            kept: Mutex::new(None),
        }
    }

    /// What to make a call with now.
    /// # Errors
    /// The settings cannot be used.
    pub fn current(&self) -> Result<reqwest::Client, BadTls> {
        let files = self.tls.for_host(&self.host);
        let changed = files.changed();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|kept| kept.made.elapsed() < self.timeouts.connection_age && kept.changed == changed) {
            return Ok(kept.client.clone());
        }
        let client = self.build(&files)?;
        *kept = Some(Kept { client: client.clone(), made: Instant::now(), changed });
        Ok(client)
    }

    fn build(&self, files: &TlsFiles) -> Result<reqwest::Client, BadTls> {
        // A program installs it at its start; reqwest panics where nobody did. Whoever was faster has installed the same.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(&self.user_agent)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.timeouts.connect)
            .tcp_keepalive(self.timeouts.connect)
            .tcp_nodelay(true)
            .pool_idle_timeout(self.timeouts.idle)
            .pool_max_idle_per_host(100)
            .retry(reqwest::retry::never());
        builder = if self.is_tls {
            builder.tls_backend_preconfigured(trust::config(files)?)
        } else {
            // No certificate of the system is needed, and an image may have none.
            builder.tls_certs_only([])
        };
        builder = match &self.proxy {
            Proxy::Environment => builder,
            Proxy::None => builder.no_proxy(),
            Proxy::Address(address) => builder.proxy(reqwest::Proxy::all(address).map_err(|_| BadTls::Proxy)?),
        };
        builder.build().map_err(|fault| BadTls::Build { why: fault.to_string() })
    }
}
