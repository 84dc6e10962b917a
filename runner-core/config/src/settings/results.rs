//! Settings of `[runner_core.results]`.

use crate::checked::Checked;
use crate::gather::Gather;
use crate::secret::Secret;
use std::time::Duration;

/// Where the results of jobs go, and how long they are kept here.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// `http://host:port` or `https://host`. `None`: there is no service.
    pub address: Option<String>,
    pub token: Option<Secret>,
    pub tls_ca_file: Option<String>,
    /// Without a service, a result becomes an artifact of its job.
    pub is_artifact: bool,
    /// Zero: until there are too many.
    pub keep_for: Duration,
    pub keep_count: u64,
    pub keep_bytes: u64,
}

pub(super) fn of(table: &Checked, gather: &mut Gather<'_>) -> Results {
    let address = table.text("address");
    let is_known = address.as_ref().is_none_or(|address| address.starts_with("http://") || address.starts_with("https://"));
    if !is_known {
        let message = "`address` of the results service is not one of `http://` or `https://`".to_owned();
        gather.refuse("no-address", message, Some(table.place("address")), "write `http://host:port` or `https://host`");
    }
    if table.flag("artifact") && address.is_some() {
        let message = "`artifact` has no effect beside `address`: results go to the service".to_owned();
        gather.note("results-service", message, Some(table.place("artifact")), "remove one of the two");
    }
    Results {
        address: address.filter(|_| is_known),
        token: table.secret("token").filter(|token| !token.is_blank()),
        tls_ca_file: table.text("tls_ca_file"),
        is_artifact: table.flag("artifact"),
        keep_for: table.duration("keep_for"),
        keep_count: table.count("keep_count"),
        keep_bytes: table.count("keep_bytes"),
    }
}
