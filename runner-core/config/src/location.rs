//! Where the configuration file is.

/// What the place of the file depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings<'a> {
    /// The variable `CONFIG_FILE`.
    pub config_file: Option<&'a str>,
    /// The home directory of whoever starts the program.
    pub home: Option<&'a str>,
    pub is_root: bool,
    pub is_windows: bool,
}

/// The file that is read when no flag names one: where GitLab's runner looks.
pub fn default_path(surroundings: Surroundings<'_>) -> String {
    let given = surroundings.config_file.filter(|path| !path.is_empty());
    match (given, surroundings.home) {
        (Some(path), _) => path.to_owned(),
        (None, _) if surroundings.is_windows => "config.toml".to_owned(),
        (None, _) if surroundings.is_root => "/etc/gitlab-runner/config.toml".to_owned(),
        (None, Some(home)) if !home.is_empty() => format!("{}/.gitlab-runner/config.toml", home.trim_end_matches('/')),
        (None, _) => "config.toml".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_where_gitlabs_runner_looks() {
        let home = Surroundings { home: Some("/home/ci"), ..Surroundings::default() };
        assert_eq!(default_path(home), "/home/ci/.gitlab-runner/config.toml");
        assert_eq!(default_path(Surroundings { is_root: true, ..home }), "/etc/gitlab-runner/config.toml");
        assert_eq!(default_path(Surroundings { config_file: Some("/x.toml"), is_root: true, ..home }), "/x.toml");
        assert_eq!(default_path(Surroundings { config_file: Some(""), ..home }), "/home/ci/.gitlab-runner/config.toml");
        assert_eq!(default_path(Surroundings { is_windows: true, ..home }), "config.toml");
        assert_eq!(default_path(Surroundings::default()), "config.toml");
    }
}
