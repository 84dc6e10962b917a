use super::*;

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<Arc<str>, Value> {
    pairs.iter().map(|(name, value)| (Arc::from(*name), Value::from(*value))).collect()
}

fn global(pairs: &[(&str, &str)]) -> Environment {
    Environment::new(&BTreeMap::new(), &variables(pairs))
}

fn scope(outer: Option<&Arc<Scope>>, pairs: &[(&str, &str)]) -> Option<Arc<Scope>> {
    Scope::over(outer, variables(pairs))
}

fn export(environment: &mut Environment, pairs: &[(&str, &str)]) {
    for (name, value) in pairs {
        environment.export(&Arc::from(*name), Value::from(*value));
    }
}

#[test]
fn env_01_serve_passes_on_everything() {
    assert!(EntryPoint::Serve.passes_on("LANG"));
    assert!(EntryPoint::Serve.passes_on("CI_JOB_TOKEN"));
}

#[test]
fn env_02_ci_passes_on_only_known_variables() {
    assert!(EntryPoint::Ci.passes_on("LANG"));
    assert!(EntryPoint::Ci.passes_on("TZ"));
    assert!(!EntryPoint::Ci.passes_on("ODD"));
}

#[test]
fn ci_passes_on_the_seventeen_names_of_the_original() {
    let names = "HTTPS_PROXY HTTP_PROXY NO_PROXY https_proxy http_proxy no_proxy all_proxy LANG LC_ALL LC_CTYPE LOGNAME USER PATH SHELL TERM TMPDIR TZ";
    assert_eq!(names.split(' ').filter(|name| EntryPoint::Ci.passes_on(name)).count(), 17);
    assert!(!EntryPoint::Ci.passes_on("ALL_PROXY") && !EntryPoint::Ci.passes_on("HOME") && !EntryPoint::Ci.passes_on("CI_X"));
}

#[test]
fn run_passes_on_all_but_four_prefixes() {
    for hidden in ["CI_X", "GITLAB_X", "FF_X", "DOCKER_ENV_X"] {
        assert!(!EntryPoint::Run.passes_on(hidden), "{hidden}");
    }
    assert!(EntryPoint::Run.passes_on("DOCKER_X"));
}

#[test]
fn env_04_a_scope_adds_to_what_is_around_it() {
    let environment = global(&[("a", "1")]);
    let child = scope(None, &[("b", "2")]);
    assert_eq!(environment.values(None), Vec::from_iter(variables(&[("a", "1")])));
    assert_eq!(environment.values(child.as_ref()), Vec::from_iter(variables(&[("a", "1"), ("b", "2")])));
}

#[test]
fn env_05_a_scope_hides_what_is_around_it() {
    let environment = global(&[("a", "1")]);
    let child = scope(None, &[("a", "2")]);
    assert_eq!(environment.get(child.as_ref(), "a"), Some(&Value::from("2")));
    assert_eq!(environment.values(child.as_ref()), Vec::from_iter(variables(&[("a", "2")])));
}

#[test]
fn an_empty_scope_is_the_scope_around_it() {
    let outer = scope(None, &[("a", "1")]);
    assert!(Arc::ptr_eq(&outer.clone().unwrap(), &scope(outer.as_ref(), &[]).unwrap()));
}

#[test]
fn env_07_a_later_export_hides_an_earlier_one() {
    let mut environment = global(&[("a", "1")]);
    export(&mut environment, &[("a", "2"), ("c", "3")]);
    export(&mut environment, &[("a", "4")]);
    assert_eq!(environment.values(None), Vec::from_iter(variables(&[("a", "4"), ("c", "3")])));
}

#[test]
fn env_08_an_export_is_seen_by_scopes_that_exist_already_and_not_by_what_was_before() {
    let mut environment = global(&[("a", "1")]);
    let before = environment.snapshot(None);
    let child = scope(None, &[("b", "2")]);
    let grandchild = scope(child.as_ref(), &[("c", "3")]);
    export(&mut environment, &[("a", "new")]);
    assert_eq!(environment.get(child.as_ref(), "a"), Some(&Value::from("new")));
    assert_eq!(environment.get(grandchild.as_ref(), "a"), Some(&Value::from("new")));
    assert_eq!(environment.values_at(&before), variables(&[("a", "1")]));
}

#[test]
fn a_snapshot_keeps_the_values_of_its_moment() {
    let mut environment = Environment::new(&variables(&[("P", "process"), ("R", "process")]), &variables(&[("R", "request")]));
    let scope = scope(None, &[("S", "scope"), ("P", "scope")]);
    export(&mut environment, &[("X", "1")]);
    let snapshot = environment.snapshot(scope.as_ref());
    export(&mut environment, &[("X", "2"), ("Y", "1")]);
    let expected = variables(&[("P", "scope"), ("R", "request"), ("S", "scope"), ("X", "1")]);
    assert_eq!(environment.values_at(&snapshot), expected);
    let now: BTreeMap<_, _> = environment.values(scope.as_ref()).into_iter().collect();
    assert_eq!(now, environment.values_at(&environment.snapshot(scope.as_ref())));
}

#[test]
fn env_09_a_log_level_is_taken_from_the_job_variable() {
    for level in ["debug", "info", "warn", "error"] {
        assert_eq!(log_level(Some(level), None), Ok(level));
    }
    assert_eq!(log_level(None, None), Ok("info"));
    assert_eq!(log_level(Some(""), Some(" ")), Ok("info"));
}

#[test]
fn env_11_a_log_level_is_trimmed_and_lower_cased() {
    assert_eq!(log_level(Some("InFo"), None), Ok("info"));
    assert_eq!(log_level(Some("  debug  "), None), Ok("debug"));
}

#[test]
fn env_13_the_job_variable_wins_over_the_process() {
    assert_eq!(log_level(Some("warn"), Some("debug")), Ok("warn"));
}

#[test]
fn env_14_an_unknown_log_level_is_refused() {
    let text = "init global environment: log level: xxx not supported";
    assert_eq!(log_level(Some("XXX"), None).unwrap_err().to_string(), text);
    assert_eq!(log_level(None, Some("XXX")).unwrap_err().to_string(), text);
}

#[test]
fn a_difference_makes_one_environment_the_other() {
    let name = |index: usize| -> Arc<str> { format!("N{}", index % 5).into() };
    let text = |index: usize| Value::from(index.to_string());
    let base = BTreeMap::from([(name(0), text(0)), (name(1), text(1))]);
    let mut environment = Environment::new(&base, &BTreeMap::new());
    let outer = Scope::over(None, [(name(1), text(7))]);
    let inner = Scope::over(outer.as_ref(), [(name(2), text(8)), (name(0), text(0))]);
    let other = Scope::over(None, [(name(3), text(9))]);
    let mut snapshots = Vec::new();
    for index in 2..12 {
        for scope in [None, outer.as_ref(), inner.as_ref(), other.as_ref()] {
            snapshots.push(environment.snapshot(scope));
        }
        environment.export(&name(index), text(index % 4));
    }
    for from in &snapshots {
        for to in &snapshots {
            let mut values = environment.values_at(from);
            let difference = environment.difference(from, to);
            assert!(difference.set.iter().all(|(name, value)| values.get(name) != Some(value)), "only what differs");
            values.extend(difference.set);
            difference.gone.iter().for_each(|name| _ = values.remove(name));
            assert_eq!(values, environment.values_at(to));
        }
    }
}
