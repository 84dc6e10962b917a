//! `builtin://service` with a real engine: ready, reached, gone with the job; and each way in which it is none of these.

use ci_tests::docker::{Engine, Mark};
use ci_tests::kit::Component;
use ci_tests::workshop::{Ends, Workshop};
use std::time::Duration;

/// Pulls and starts take a while on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

fn service(inputs: &str) -> String {
    format!("{{}}\n---\nrun:\n  - name: db\n    func: builtin://service\n    inputs: {{{inputs}}}\n")
}

#[test]
fn a_job_on_this_machine_uses_postgresql_and_nothing_is_left_after_it() {
    let Some(engine) = Engine::shared() else { return };
    let Some(()) = engine.images(&["postgres"]) else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let definition = service(&format!("image: \"ci/postgres:15\", aliases: [db], variables: {{POSTGRES_PASSWORD: x}}, labels: {mark}"))
        + "  - {name: use, func: ./use, inputs: {host: \"${{ steps.db.outputs.host }}\"}}\n";
    // PostgreSQL answers a request for TLS with one letter: no.
    let ask = "exec 3<>/dev/tcp/$DB_PORT_5432_TCP_ADDR/$DB_PORT_5432_TCP_PORT; printf '\\0\\0\\0\\010\\004\\322\\026\\057' >&3; \
               echo answer $(head -c1 <&3) from $DB_PORT of $0";
    workshop.file("job/use/func.yml", format!("spec: {{inputs: {{host: {{type: string}}}}}}\n---\nexec:\n  command:\n    - bash\n    - -c\n    - {ask}\n    - ${{{{ inputs.host }}}}\n"));
    engine
        .run(&workshop, &definition, &[])
        .limit(LIMIT)
        .ends(0)
        .prints("answer N from tcp://")
        .prints(":5432 of db")
        .prints("Service ci/postgres:15 is ready: `db` in containers of this job");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn a_service_that_ends_fails_its_step_with_its_log() {
    let Some(engine) = Engine::shared() else { return };
    let Some(()) = engine.images(&["busybox"]) else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let inputs = format!("image: \"ci/busybox:1\", command: [sh, -c, \"echo no licence; sleep 1; exit 5\"], ports: [80], labels: {mark}");
    engine
        .run(&workshop, &service(&inputs), &["--result", "result.json"])
        .limit(LIMIT)
        .ends(1)
        .says("| no licence")
        .says("error: the service `ci/busybox:1` ended before it was ready (exit code 5)");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn a_service_that_does_not_listen_is_given_up_at_its_limit() {
    let Some(engine) = Engine::shared() else { return };
    let Some(()) = engine.images(&["busybox"]) else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let inputs = format!("image: \"ci/busybox:1\", command: [sleep, \"100\"], ports: [80], ready_within: 300ms, labels: {mark}");
    engine
        .run(&workshop, &service(&inputs), &[])
        .limit(LIMIT)
        .ends(1)
        .says("error: the service `ci/busybox:1` was not ready within 0.3 s: nothing listens on port 80");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn an_image_that_is_not_there_is_named_with_the_reason() {
    let Some(engine) = Engine::shared() else { return };
    let workshop = Workshop::new();
    engine
        .run(&workshop, &service("image: \"ci/absent:1\", pull_policy: [never]"), &[])
        .limit(LIMIT)
        .ends(1)
        .says("error: could not get the image `ci/absent:1`: it is not there, and is never pulled");
    engine
        .run(&workshop, &service("image: \"127.0.0.1:1/absent:1\""), &[])
        .limit(LIMIT)
        .ends(1)
        .says("error: could not get the image `127.0.0.1:1/absent:1`: ")
        .says("connection refused");
}

#[test]
fn an_image_of_a_private_registry_comes_with_a_login_only() {
    let Some(engine) = Engine::shared() else { return };
    let Some(()) = engine.images(&["busybox"]) else { return };
    let Some(registry) = Component::start_with("registry", &[("REGISTRY_USER", "user"), ("REGISTRY_PASSWORD", "hunter22")]) else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let image = format!("{}/private:{}", registry.get("REGISTRY"), std::process::id());
    engine.docker(&["tag", "ci/busybox:1", &image]);
    engine.docker(&["login", "-u", "user", "-p", "hunter22", registry.get("REGISTRY")]);
    engine.docker(&["push", "-q", &image]);
    engine.docker(&["logout", registry.get("REGISTRY")]);
    engine.docker(&["rmi", &image]);

    let inputs = |more: &str| service(&format!("image: \"{image}\", command: [sleep, \"100\"], labels: {mark}{more}"));
    engine
        .run(&workshop, &inputs(""), &[])
        .limit(LIMIT)
        .ends(1)
        .says("could not get the image")
        .says("hint: check its name; if it is not public, give a login");
    // "user:hunter22"
    let config = format!("{{\"auths\": {{\"{}\": {{\"auth\": \"dXNlcjpodW50ZXIyMg==\"}}}}}}", registry.get("REGISTRY"));
    let ended = engine
        .run(&workshop, &inputs(""), &[])
        .env("DOCKER_AUTH_CONFIG", &config)
        .limit(LIMIT)
        .ends(0)
        .prints(&format!("Pulling image {image}"));
    assert!(!ended.stderr().contains("hunter22") && !ended.stdout().contains("hunter22"), "{ended}");
    engine.docker(&["rmi", &image]);
    let given = format!(", credentials: [{{registry: \"{}\", username: user, password: hunter22}}]", registry.get("REGISTRY"));
    engine.run(&workshop, &inputs(&given), &[]).limit(LIMIT).ends(0);
    engine.docker(&["rmi", &image]);
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn an_engine_that_is_not_there_is_said_with_the_way_out() {
    let workshop = Workshop::new();
    let engine = Engine { host: format!("unix://{}", workshop.path("no.sock").display()) };
    engine
        .run(&workshop, &service("image: \"ci/busybox:1\""), &[])
        .ends(1)
        .says("does not answer")
        .says("hint: start the engine (`dockerd`), or name another with `DOCKER_HOST`");
}

#[test]
fn an_engine_that_hangs_is_given_up_at_its_limit() {
    let Some(component) = Component::start("private-docker") else { return };
    let (workshop, engine) = (Workshop::new(), Engine::of(&component));
    let pid = component.get("DOCKER_PID").parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it can be frozen");
    let ended = engine.run(&workshop, &service("image: \"ci/busybox:1\", engine_timeout: 1s"), &[]).finish();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it can go on");
    ended.exits(1).says("has said nothing for 1 s");
}

#[test]
fn inputs_that_make_no_sense_are_told_at_once() {
    let workshop = Workshop::new();
    let engine = Engine { host: "unix:///nowhere".into() };
    engine
        .run(&workshop, &service("image: \"Postgres\", memory: lots, network: host"), &[])
        .ends(1)
        .says("`image`: `Postgres` is no name of an image")
        .says("`memory`: `lots` is no size");
    engine
        .run(&workshop, &service("image: a, privileged: true"), &[])
        .ends(1)
        .says("error: not allowed on this machine: a privileged container")
        .says("/etc/step-runner/docker.json");
}
