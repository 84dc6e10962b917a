//! The first line that a plugin prints, and the variables that its host sets. Both sides, as values.
//!
//! `CORE|APP|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE`, and a seventh field only for a host that asked for multiplexing. Texts of refusals are
//! those of the Go library (observed F.3, F.6.1), without the name of its language.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Says to a plugin that a host has started it, and not a person by mistake (observed F, Summary 1).
pub const COOKIE: (&str, &str) = ("FLEETING_INSTANCE_GROUP_PLUGIN", "4c6410b1-cb78-4962-8c76-ab936d0ea908");
/// Of go-plugin itself.
pub const CORE: u32 = 1;
/// Of the fleeting service. There has only been this one.
pub const APP: u32 = 0;

/// The variables of go-plugin. A host that itself runs as a plugin must not hand its own on.
pub const VERSIONS: &str = "PLUGIN_PROTOCOL_VERSIONS";
pub const MIN_PORT: &str = "PLUGIN_MIN_PORT";
pub const MAX_PORT: &str = "PLUGIN_MAX_PORT";
pub const CLIENT_CERTIFICATE: &str = "PLUGIN_CLIENT_CERT";
pub const MULTIPLEX: &str = "PLUGIN_MULTIPLEX_GRPC";
pub const SOCKET_DIRECTORY: &str = "PLUGIN_UNIX_SOCKET_DIR";
pub const SOCKET_GROUP: &str = "PLUGIN_UNIX_SOCKET_GROUP";
pub const ALL: [&str; 7] = [VERSIONS, MIN_PORT, MAX_PORT, CLIENT_CERTIFICATE, MULTIPLEX, SOCKET_DIRECTORY, SOCKET_GROUP];

/// The ports among which a plugin chooses where it has to listen on TCP.
pub const PORTS: (u16, u16) = (10_000, 25_000);
/// A certificate field that is shorter counts as none.
const SHORTEST_CERTIFICATE: usize = 50;

/// Where a plugin listens, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub app: u32,
    pub address: Address,
    /// DER. `None`: it does not serve TLS.
    pub certificate: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// Why a first line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("unrecognized remote plugin message: {line}")]
    Unrecognized { line: String },
    #[error("incompatible core API version with plugin. Plugin version: {0}, Core version: {CORE}")]
    Core(u32),
    #[error("error parsing core protocol version: `{0}` is no number")]
    CoreNumber(String),
    #[error("incompatible API version with plugin. Plugin version: {0}, Client versions: [{APP}]")]
    App(u32),
    #[error("error parsing protocol version `{0}`: it is no number")]
    AppNumber(String),
    #[error("unknown address type: {network} {address}")]
    Network { network: String, address: String },
    #[error("unsupported plugin protocol \"{0}\". Supported: [grpc]")]
    Protocol(String),
    #[error("error parsing server cert: {0}")]
    Certificate(&'static str),
    #[error("plugin did not return a certificate, though TLS was asked for")]
    NoCertificate,
}

impl Line {
    /// Reads what a plugin has printed. `tls`: the host wants it.
    /// # Errors
    /// It is no such line, or one of a plugin that this host cannot talk to.
    pub fn parse(line: &str, tls: bool) -> Result<Self, LineFault> {
        let line = line.trim();
        let fields: Vec<&str> = line.split('|').collect();
        let &[core, app, network, address, ref rest @ ..] = fields.as_slice() else {
            return Err(LineFault::Unrecognized { line: shown(line) });
        };
        match core.parse().map_err(|_| LineFault::CoreNumber(shown(core)))? {
            CORE => {}
            other => return Err(LineFault::Core(other)),
        }
        let app = match app.parse().map_err(|_| LineFault::AppNumber(shown(app)))? {
            APP => APP,
            other => return Err(LineFault::App(other)),
        };
        let address = match network {
            "unix" => Address::Unix(PathBuf::from(address)),
            "tcp" => Address::Tcp(address.parse().map_err(|_| unknown(network, address))?),
            _ => return Err(unknown(network, address)),
        };
        // A plugin from before gRPC leaves the field out.
        match rest.first().copied().unwrap_or("netrpc") {
            "grpc" => {}
            other => return Err(LineFault::Protocol(shown(other))),
        }
        let certificate = rest.get(1).copied().unwrap_or_default();
        let certificate = if certificate.len() < SHORTEST_CERTIFICATE { None } else { Some(certificate) };
        let certificate = certificate.map(|text| STANDARD_NO_PAD.decode(text)).transpose();
        let certificate = certificate.map_err(|_| LineFault::Certificate("illegal base64 data; it must be without padding"))?;
        if tls && certificate.is_none() {
            return Err(LineFault::NoCertificate);
        }
        Ok(Self { app, address, certificate })
    }

    /// As a plugin prints it. `multiplexing`: the host has asked for that, which we cannot do.
    pub fn render(&self, multiplexing: bool) -> String {
        let (network, address) = match &self.address {
            Address::Unix(path) => ("unix", path.display().to_string()),
            Address::Tcp(address) => ("tcp", address.to_string()),
        };
        let certificate = self.certificate.as_ref().map(|der| STANDARD_NO_PAD.encode(der)).unwrap_or_default();
        let multiplexing = if multiplexing { "|false" } else { "" };
        format!("{CORE}|{}|{network}|{address}|grpc|{certificate}{multiplexing}\n", self.app)
    }
}

fn unknown(network: &str, address: &str) -> LineFault {
    LineFault::Network { network: shown(network), address: shown(address) }
}

/// Somebody else's bytes in a message of ours: short, and in one line.
fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match clean.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &clean[..cut]),
        None => clean,
    }
}

/// Which version of the service to speak: the highest that both know, else our lowest, which the host will refuse. Also what cannot be read in
/// the host's list; `None` for it: a host from before there was one.
pub fn negotiate(offered: Option<&str>, ours: &[u32]) -> (u32, Vec<String>) {
    let mut unreadable = Vec::new();
    let mut theirs = BTreeSet::new();
    for entry in offered.unwrap_or_default().split(',').filter(|entry| !entry.is_empty()) {
        match entry.parse::<u32>() {
            Ok(version) => _ = theirs.insert(version),
            Err(_) => unreadable.push(entry.to_owned()),
        }
    }
    let lowest = ours.iter().min().copied().unwrap_or(APP);
    let common = theirs.iter().rev().find(|version| ours.contains(version)).copied();
    (common.unwrap_or(lowest), unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        Line::parse(line, false).unwrap_err().to_string()
    }

    fn at(path: &str) -> Line {
        Line { app: 0, address: Address::Unix(PathBuf::from(path)), certificate: None }
    }

    #[test]
    fn flh_01_a_line_says_where_the_plugin_listens() {
        for line in ["1|0|unix|/tmp/p1|grpc|\n", "1|0|unix|/tmp/p1|grpc||true"] {
            assert_eq!(Line::parse(line, false), Ok(at("/tmp/p1")), "{line:?}");
        }
        let tcp = Line::parse("1|0|tcp|127.0.0.1:10000|grpc|", false).unwrap();
        assert_eq!(tcp.address, Address::Tcp("127.0.0.1:10000".parse().unwrap()));
    }

    #[test]
    fn flh_02_a_line_without_its_empty_end_is_accepted() {
        assert_eq!(Line::parse("1|0|unix|/tmp/p1|grpc", false), Ok(at("/tmp/p1")));
    }

    #[test]
    fn flh_11_blanks_around_a_line_do_not_matter() {
        assert_eq!(Line::parse("  1|0|unix|/tmp/p1|grpc|\r\n", false), Ok(at("/tmp/p1")));
    }

    #[test]
    fn flh_04_what_is_no_line_is_shown() {
        assert_eq!(refused("1|0|unix"), "unrecognized remote plugin message: 1|0|unix");
        assert_eq!(refused("hello\n"), "unrecognized remote plugin message: hello");
        assert_eq!(refused("\n"), "unrecognized remote plugin message: ");
        assert!(refused(&"x".repeat(70_000)).len() < 300);
    }

    #[test]
    fn flh_07_a_plugin_of_another_core_is_refused() {
        assert_eq!(refused("2|0|unix|/p|grpc|"), "incompatible core API version with plugin. Plugin version: 2, Core version: 1");
    }

    #[test]
    fn flh_08_a_core_that_is_no_number_is_refused() {
        assert_eq!(refused("x|0|unix|/p|grpc|"), "error parsing core protocol version: `x` is no number");
    }

    #[test]
    fn flh_10_a_network_that_nobody_knows_is_refused() {
        assert_eq!(refused("1|0|udp|/p|grpc|"), "unknown address type: udp /p");
    }

    #[test]
    fn a_plugin_of_another_service_is_refused_in_the_words_of_the_original() {
        let refusals = ["1|1|unix|/p|grpc|", "1|x|unix|/p|grpc|", "1|0|unix|/p"].map(refused);
        insta::assert_snapshot!(refusals.join("\n"), @r#"
        incompatible API version with plugin. Plugin version: 1, Client versions: [0]
        error parsing protocol version `x`: it is no number
        unsupported plugin protocol "netrpc". Supported: [grpc]
        "#);
    }

    #[test]
    fn flh_22_a_short_certificate_is_none_and_that_is_said_where_one_was_asked_for() {
        assert_eq!(Line::parse("1|0|unix|/p|grpc|01234567890123456789", false).unwrap().certificate, None);
        let fault = Line::parse("1|0|unix|/p|grpc|01234567890123456789", true).unwrap_err();
        assert_eq!(fault.to_string(), "plugin did not return a certificate, though TLS was asked for");
        let padded = format!("1|0|unix|/p|grpc|{}==", "A".repeat(78));
        assert!(matches!(Line::parse(&padded, true), Err(LineFault::Certificate(_))));
    }

    #[test]
    fn fls_08_what_is_printed_can_be_read_and_the_seventh_field_is_only_for_who_asks() {
        let line = Line { certificate: Some(vec![7; 100]), ..at("/tmp/p") };
        assert_eq!(Line::parse(&line.render(false), true), Ok(line.clone()));
        assert_eq!(at("/tmp/p").render(false), "1|0|unix|/tmp/p|grpc|\n");
        assert_eq!(at("/tmp/p").render(true), "1|0|unix|/tmp/p|grpc||false\n");
    }

    #[test]
    fn fls_05_a_host_that_offers_no_versions_gets_our_lowest() {
        assert_eq!(negotiate(None, &[1, 2]), (1, Vec::new()));
    }

    #[test]
    fn fls_04_the_highest_common_version_counts_and_else_our_lowest() {
        let chosen = |offered| negotiate(offered, &[0]).0;
        assert_eq!([Some("0"), Some("1"), Some("0,1"), Some("1,2"), Some("9"), Some(""), None].map(chosen), [0; 7]);
        assert_eq!(negotiate(Some("1,2,3"), &[1, 2]).0, 2);
        assert_eq!(negotiate(Some("9"), &[1, 2]).0, 1);
        assert_eq!(negotiate(Some("a,0, 0"), &[0]), (0, vec!["a".to_owned(), " 0".to_owned()]));
    }
}
