//! What an entry adds to each of its jobs, in the words of the steps that carry it out.

use runner_config::secret::Secret;
use runner_config::settings::{Docker, DockerService, PullPolicy, Runner as Entry};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use step_payload::{Added, AddedContainers, AddedService};

/// `authority`: certificates that jobs may trust besides the system's.
pub fn of(entry: &Entry, authority: Option<String>) -> Added {
    let script = |script: &Option<Secret>| script.as_ref().map(|script| script.expose().to_owned()).unwrap_or_default();
    Added {
        files: authority.map(|pem| ("CI_SERVER_TLS_CA_FILE".to_owned(), pem)).into_iter().collect(),
        pre_get_sources: script(&entry.pre_get_sources_script),
        post_get_sources: script(&entry.post_get_sources_script),
        pre_build: script(&entry.pre_build_script),
        post_build: script(&entry.post_build_script),
        clone_url: script(&entry.clone_url),
        get_sources_timeout: entry.get_sources_timeout,
        artifact_timeout: Some(entry.artifact_upload_timeout),
        containers: entry.docker.as_ref().map(containers).unwrap_or_default(),
    }
}

fn containers(docker: &Docker) -> AddedContainers {
    let given = docker.given.expose();
    let both = [
        ("pull_policy", json!(docker.pull_policies.iter().map(|policy| word(*policy)).collect::<Vec<_>>())),
        ("dns", json!(docker.dns)),
        ("dns_search", given["dns_search"].clone()),
        ("extra_hosts", json!(docker.extra_hosts)),
        ("network", json!(docker.network_mode)),
    ];
    let of_job = [
        ("user", json!(docker.user)),
        ("privileged", json!(docker.privileged)),
        ("hostname", given["hostname"].clone()),
        ("memory", json!(docker.memory)),
        ("cpus", number(docker.cpus.as_deref())),
        ("shm_size", json!(docker.shm_size.map(|bytes| bytes.to_string()))),
        ("cap_add", json!(docker.cap_add)),
        ("cap_drop", json!(docker.cap_drop)),
        ("tmpfs", json!(docker.tmpfs)),
    ];
    let of_service = [
        ("privileged", json!(docker.services_privileged)),
        ("memory", given["service_memory"].clone()),
        ("cpus", number(given["service_cpus"].as_str())),
        ("tmpfs", given["services_tmpfs"].clone()),
        ("ready_within", json!(docker.wait_for_services_timeout.map(|limit| format!("{}s", limit.as_secs().max(1))))),
    ];
    AddedContainers {
        image: docker.image.clone().unwrap_or_default(),
        services: docker.services.iter().map(service).collect(),
        inputs: said(both.iter().cloned().chain(of_job)),
        service_inputs: said(both.iter().cloned().chain(of_service)),
    }
}

/// What the file says nothing about is left to the step.
fn said(inputs: impl Iterator<Item = (&'static str, Json)>) -> BTreeMap<String, Json> {
    let is_said = |value: &Json| match value {
        Json::Null | Json::Bool(false) => false,
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
        Json::String(text) => !text.is_empty(),
        Json::Bool(true) | Json::Number(_) => true,
    };
    inputs.filter(|(_, value)| is_said(value)).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// GitLab writes the number of processors as a text.
fn number(text: Option<&str>) -> Json {
    text.and_then(|text| text.trim().parse::<f64>().ok()).map_or(Json::Null, |number| json!(number))
}

fn word(policy: PullPolicy) -> &'static str {
    match policy {
        PullPolicy::Always => "always",
        PullPolicy::IfNotPresent => "if-not-present",
        PullPolicy::Never => "never",
    }
}

fn service(service: &DockerService) -> AddedService {
    AddedService {
        image: service.name.clone(),
        aliases: service.aliases.clone(),
        entrypoint: service.entrypoint.clone(),
        command: service.command.clone(),
        variables: service.environment.iter().map(|variable| (variable.name.clone(), variable.value.expose().to_owned())).collect(),
    }
}

/// `volumes` of the file as mounts. A path alone is a volume that the jobs of a project share, one for each of its places.
pub fn mounts(docker: &Docker, short_token: &str, project: u64, place: u32) -> Vec<String> {
    let mount = |volume: &String| match volume.split_once(':') {
        Some(_) => Some(volume.clone()),
        None if docker.disable_cache => None,
        None => {
            let name: String = volume.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
            Some(format!("runner-{short_token}-project-{project}-concurrent-{place}-cache{name}:{volume}"))
        }
    };
    docker.volumes.iter().filter_map(mount).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(more: &str) -> Entry {
        let text = format!("[[runners]]\nurl = \"https://x\"\ntoken = \"glrt-abc\"\nexecutor = \"docker\"\n{more}");
        let parsed = runner_config::parse(&text, &BTreeMap::new());
        parsed.settings.unwrap_or_else(|| panic!("{:?}", parsed.problems)).runners.remove(0)
    }

    #[test]
    fn scripts_timeouts_and_addresses_reach_the_job() {
        let added = of(
            &entry(
                "pre_clone_script = \"a\"\npost_get_sources_script = \"b\"\npre_build_script = \"c\"\npost_build_script = \"d\"\nclone_url = \"http://inside\"\n\
                 get_sources_timeout = \"5m\"\n[runners.artifact]\nupload_timeout = \"2m\"\n",
            ),
            Some("-----BEGIN".to_owned()),
        );
        let scripts = [added.pre_get_sources, added.post_get_sources, added.pre_build, added.post_build, added.clone_url];
        assert_eq!(scripts, ["a", "b", "c", "d", "http://inside"]);
        assert_eq!(added.get_sources_timeout.map(|limit| limit.as_secs()), Some(300));
        assert_eq!(added.artifact_timeout.map(|limit| limit.as_secs()), Some(120));
        assert_eq!(added.files["CI_SERVER_TLS_CA_FILE"], "-----BEGIN");
    }

    #[test]
    fn containers_are_as_the_file_says_and_nothing_is_said_that_it_does_not() {
        let added =
            of(&entry("[runners.docker]\nimage = \"alpine\"\npull_policy = \"if-not-present\"\ncpus = \"1.5\"\nmemory = \"512m\"\n"), None);
        insta::assert_snapshot!(json!(added.containers.inputs), @r#"{"cpus":1.5,"memory":"512m","pull_policy":["if-not-present"]}"#);
        insta::assert_snapshot!(json!(added.containers.service_inputs), @r#"{"pull_policy":["if-not-present"],"ready_within":"30s"}"#);
        let added = of(&entry("[[runners.docker.services]]\nname = \"redis\"\nalias = \"cache,r\"\nenvironment = [\"A=1\"]\n"), None);
        assert_eq!(added.containers.services[0].aliases, ["cache", "r"]);
        assert_eq!(added.containers.services[0].variables["A"], "1");
    }

    #[test]
    fn a_volume_without_a_source_belongs_to_the_jobs_of_one_project_in_one_place() {
        let docker = entry("[runners.docker]\nvolumes = [\"/cache\", \"/host:/inside:ro\"]\n").docker.expect("a table");
        assert_eq!(mounts(&docker, "abc", 42, 1), ["runner-abc-project-42-concurrent-1-cache-cache:/cache", "/host:/inside:ro"]);
        let docker = entry("[runners.docker]\nvolumes = [\"/cache\"]\ndisable_cache = true\n").docker.expect("a table");
        assert_eq!(mounts(&docker, "abc", 42, 1), Vec::<String>::new());
    }
}
