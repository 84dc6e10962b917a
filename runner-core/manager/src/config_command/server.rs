//! The server of an entry, as these commands speak to it.

use crate::run::system_id;
use runner_config::settings::Tls;
use runner_gitlab::client::{TlsFiles, Unwatched};
use runner_gitlab::{Client, ClientSettings, RunnerInfo, ServerUrl};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_console::exit::{Exit, Stop};

/// A client for a server. `directory` is that of the configuration: the system's id and certificates lie there.
/// # Errors
/// The address is none, or the system's id can be neither read nor written.
pub fn client(url: &str, executor: &str, tls: &Tls, directory: &Path) -> Result<Client, Stop> {
    let url =
        ServerUrl::parse(url).map_err(|bad| Stop::bad_input(bad.to_string()).with_hint("write it as `https://gitlab.example.com`"))?;
    let system_id = system_id::of_directory(directory)?;
    let mut settings = ClientSettings::new(url, RunnerInfo::of_this_program(executor, ""), system_id);
    let path = |path: &Option<String>| path.as_ref().map(PathBuf::from);
    settings.tls = TlsFiles {
        authority: path(&tls.ca_file),
        certificate: path(&tls.cert_file),
        key: path(&tls.key_file),
        directory: Some(directory.join("certs")),
    };
    Ok(Client::new(settings, Arc::new(Unwatched)))
}

/// Carries out calls, one after another.
/// # Errors
/// The runtime does not start.
pub fn wait<T>(work: impl Future<Output = T>) -> Result<T, Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|fault| Stop::new(Exit::Fault, format!("could not begin: {fault}")))?;
    Ok(runtime.block_on(work))
}
