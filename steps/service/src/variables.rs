//! What later steps find in their environment: how a service is reached from the machine of the job.
//!
//! The names are those of Docker's links, which GitLab's users know: `DB_PORT_5432_TCP_ADDR` and its sisters.

use std::collections::BTreeMap;

/// `ports`: those of the service, and by which number each is reached at `address`.
pub fn exports(aliases: &[String], address: &str, ports: &BTreeMap<u16, u16>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for alias in aliases {
        let name = variable_name(alias);
        for (own, reached) in ports {
            let url = format!("tcp://{}:{reached}", in_url(address));
            let prefix = format!("{name}_PORT_{own}_TCP");
            // The lowest port stands for the service.
            variables.entry(format!("{name}_PORT")).or_insert_with(|| url.clone());
            variables.insert(format!("{prefix}_ADDR"), address.to_owned());
            variables.insert(format!("{prefix}_PORT"), reached.to_string());
            variables.insert(format!("{prefix}_PROTO"), "tcp".to_owned());
            variables.insert(prefix, url);
        }
    }
    variables
}

fn in_url(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

fn variable_name(alias: &str) -> String {
    let name: String = alias.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    // No shell takes a name that begins with a digit.
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_links() {
        let exports = exports(&["my-db".into()], "172.18.0.2", &BTreeMap::from([(5432, 5432), (9000, 32768)]));
        let shown: Vec<String> = exports.iter().map(|(name, value)| format!("{name}={value}")).collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        MY_DB_PORT=tcp://172.18.0.2:5432
        MY_DB_PORT_5432_TCP=tcp://172.18.0.2:5432
        MY_DB_PORT_5432_TCP_ADDR=172.18.0.2
        MY_DB_PORT_5432_TCP_PORT=5432
        MY_DB_PORT_5432_TCP_PROTO=tcp
        MY_DB_PORT_9000_TCP=tcp://172.18.0.2:32768
        MY_DB_PORT_9000_TCP_ADDR=172.18.0.2
        MY_DB_PORT_9000_TCP_PORT=32768
        MY_DB_PORT_9000_TCP_PROTO=tcp
        ");
    }

    #[test]
    fn a_name_is_one_that_shells_take() {
        assert_eq!([variable_name("registry.example-a"), variable_name("7zip")], ["REGISTRY_EXAMPLE_A", "_7ZIP"]);
        assert_eq!(exports(&["a".into()], "fd00::2", &BTreeMap::from([(80, 80)]))["A_PORT"], "tcp://[fd00::2]:80");
    }
}
