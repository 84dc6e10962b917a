//! By which names a service is reached: those that the job gives, and those that GitLab makes from the image.
//!
//! Source: GitLab's documentation, "Accessing the services", and GitLab Runner v19.4, `helpers/container/services`.

use step_docker::image_reference::ImageReference;

/// All names, in order, each once. Those of the job come first.
pub fn aliases(given: &[String], image: &ImageReference) -> Vec<String> {
    let written = image.to_string();
    let name = without_version(&written);
    let mut aliases: Vec<String> = Vec::new();
    let of_image = [name.replace('/', "__"), name.replace('/', "-")];
    for alias in given.iter().cloned().chain(of_image) {
        if !alias.is_empty() && !aliases.contains(&alias) {
            aliases.push(alias);
        }
    }
    aliases
}

/// The name as it was written, without tag, digest and the registry's port.
fn without_version(written: &str) -> String {
    let name = written.split('@').next().unwrap_or(written);
    let (folders, last) = name.rsplit_once('/').map_or(("", name), |(folders, last)| (folders, last));
    let last = last.split(':').next().unwrap_or(last);
    if folders.is_empty() {
        return last.to_owned();
    }
    let (host, rest) = folders.split_once('/').unwrap_or((folders, ""));
    let host = host.split(':').next().unwrap_or(host);
    [host, rest, last].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&str], image: &str) -> Vec<String> {
        aliases(&given.iter().map(|alias| (*alias).to_owned()).collect::<Vec<_>>(), &ImageReference::parse(image).unwrap())
    }

    #[test]
    fn names_follow_from_the_image_as_gitlab_makes_them() {
        assert_eq!(of(&[], "postgres:16"), ["postgres"]);
        assert_eq!(of(&[], "tutum/wordpress"), ["tutum__wordpress", "tutum-wordpress"]);
        assert_eq!(of(&[], "registry.example:5000/my/image:1"), ["registry.example__my__image", "registry.example-my-image"]);
        assert_eq!(of(&[], "registry.example/image@sha256:0"), ["registry.example__image", "registry.example-image"]);
    }

    #[test]
    fn names_of_the_job_come_first() {
        assert_eq!(of(&["db", "postgres"], "postgres"), ["db", "postgres"]);
    }
}
