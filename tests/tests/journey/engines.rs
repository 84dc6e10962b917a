//! `builtin://docker` at the edges: limits of the job, bytes of its network, an engine behind TCP, logins by a program, an image of another processor.

use ci_tests::docker::{Engine, Mark};
use ci_tests::kit::Component;
use ci_tests::workshop::{Ends, Workshop};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Images are made and containers start slowly on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

fn engine() -> Option<Engine> {
    let engine = Engine::shared()?;
    engine.images(&["busybox"])?;
    Some(engine)
}

/// A job of one container. `inputs` and `run` are YAML flow.
fn job(image: &str, mark: &Mark, inputs: &str, run: &str) -> String {
    format!(
        "{{}}\n---\nrun:\n  - name: box\n    func: builtin://docker\n    inputs:\n      image: \"{image}\"\n      labels: {mark}\n      {inputs}\n      run:\n        {run}\n"
    )
}

/// The first inner step of the result.
fn inner(workshop: &Workshop) -> serde_json::Value {
    workshop.result("result.json")["subStepResults"][0]["subStepResults"][0]["subStepResults"][0].clone()
}

#[test]
fn a_container_is_held_to_the_limits_of_the_job() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let run = "- {name: look, script: \"cut -d: -f1 -s /proc/net/dev | tr -d ' ' >devices; env >environment; cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max >memory 2>/dev/null || true\"}";
    let limits = ["--limit", "memory=96MiB,pids=60,cpu=0.5,network=none,disk=1GiB", "--result", "result.json"];
    engine.run(&workshop, &job("ci/busybox:1", &mark, "", run), &limits).limit(LIMIT).ends(0);
    assert_eq!(workshop.read("devices"), "lo\n");
    assert_eq!(workshop.read("memory"), "100663296\n");
    assert!(!workshop.read("environment").contains("STEP_RUNNER_HELD"), "what is told to the agent is not told to steps");
    let look = inner(&workshop);
    let limits = look["limits"].as_array().unwrap_or_else(|| panic!("no limits: {look}"));
    let told: Vec<String> = limits.iter().map(|limit| format!("{}: {}", limit["name"], limit["means"]).replace('"', "")).collect();
    let container = "container: all its steps together";
    let expected = ["cpu", "memory", "pids"].map(|name| format!("{name}: {container}"));
    assert_eq!(told[..3], expected);
    assert_eq!(told[3..], ["disk: rlimit: the size of each file".to_owned(), format!("network: {container}")]);
    // Waiting for it costs nothing of it.
    assert!(workshop.result("result.json")["subStepResults"][0]["limits"].is_null());
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn bytes_of_the_network_of_a_container_are_those_of_its_steps() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    // The machine of the engine, seen from a container, is its gateway.
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let Ok((mut caller, _)) = listener.accept() else { return };
        let mut all = vec![0; 100_000];
        let _ = caller.read_exact(&mut all);
    });
    let gateway = "$(ip route | sed -n 's/^default via \\\\([0-9.]*\\\\).*/\\\\1/p')";
    let run = format!(
        "- {{name: talk, script: \"head -c 100000 /dev/zero | nc -w 10 {gateway} {port} || true\"}}\n        - {{name: silent, script: \"true\"}}"
    );
    engine.run(&workshop, &job("ci/busybox:1", &mark, "", &run), &["--result", "result.json"]).limit(LIMIT).ends(0);
    let box_node = workshop.result("result.json")["subStepResults"][0]["subStepResults"][0].clone();
    let sent = |node: &serde_json::Value| node["usage"]["networkSent"].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    assert!(sent(&box_node["subStepResults"][0]) >= 50_000, "{box_node:#}");
    assert!(sent(&box_node["subStepResults"][1]) < 5_000, "{box_node:#}");
    assert!(sent(&box_node) >= 50_000, "the step that handed over has what was used inside: {box_node:#}");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

/// Carries what comes over TCP to the engine's socket, as a machine does whose engine is behind a port.
fn behind_tcp(socket: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let socket = socket.to_owned();
    std::thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let Ok(engine) = UnixStream::connect(&socket) else { return };
            let (mut from_caller, mut to_caller) = (caller.try_clone().expect("a socket"), caller);
            let (mut from_engine, mut to_engine) = (engine.try_clone().expect("a socket"), engine);
            std::thread::spawn(move || {
                carry(&mut from_caller, &mut to_engine);
                let _ = to_engine.shutdown(Shutdown::Write);
            });
            std::thread::spawn(move || {
                carry(&mut from_engine, &mut to_caller);
                let _ = to_caller.shutdown(Shutdown::Write);
            });
        }
    });
    format!("tcp://{address}")
}

fn carry(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

#[test]
fn an_engine_behind_tcp_gets_the_work_directory_by_copy() {
    let Some(engine) = engine() else { return };
    let Some(socket) = engine.host.strip_prefix("unix://") else {
        ci_tests::skipped::because("the engine of this machine has no socket");
        return;
    };
    let engine = Engine { host: behind_tcp(socket) };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    workshop.file("given", "from outside");
    let run = "- {name: change, script: \"cat given; echo from inside >made\"}";
    engine.run(&workshop, &job("ci/busybox:1", &mark, "", run), &[]).limit(LIMIT).ends(0).prints("from outside");
    assert_eq!(workshop.read("made"), "from inside\n");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn a_program_that_keeps_logins_is_asked_for_the_one_of_a_registry() {
    let Some(engine) = engine() else { return };
    let login = [("REGISTRY_USER", "ann"), ("REGISTRY_PASSWORD", "p4ssword")];
    let Some(registry) = Component::start_with("registry", &login) else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let registry = registry.get("REGISTRY");
    let image = format!("{registry}/private/busybox:1");
    engine.docker(&["login", "-u", "ann", "-p", "p4ssword", registry]);
    engine.docker(&["tag", "ci/busybox:1", &image]);
    engine.docker(&["push", "-q", &image]);
    engine.docker(&["rmi", &image]);
    engine.docker(&["logout", registry]);
    workshop.file("docker/config.json", format!(r#"{{"credHelpers": {{"{registry}": "kit"}}}}"#));
    let program = workshop.file(
        "bin/docker-credential-kit",
        "#!/bin/sh\n[ \"$1\" = get ] || exit 2\ncat >\"${0%/*}/../asked\"\necho '{\"Username\":\"ann\",\"Secret\":\"p4ssword\"}'\n",
    );
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", workshop.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let definition = job(&image, &mark, "pull_policy: [always]", "- {name: say, script: echo hello}");
    let run = |config: &str| {
        let run = engine.run(&workshop, &definition, &[]).env("PATH", &path).env("DOCKER_CONFIG", workshop.path(config));
        run.limit(LIMIT).finish()
    };
    let finished = run("docker").exits(0).prints("hello");
    assert!(!finished.stdout().contains("p4ssword") && !finished.stderr().contains("p4ssword"), "{finished}");
    assert_eq!(workshop.read("asked").trim(), registry);
    // Nobody has a login: the refusal is said.
    run("nowhere").exits(1).says("auth");
    engine.docker(&["rmi", &image]);
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn an_image_of_another_processor_is_told_as_that() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    // The same files, and a configuration that says something else.
    let make = workshop.shell(
        "set -e; docker save ci/busybox:1 -o image.tar; mkdir image; tar -C image -xf image.tar; cd image; \
         config=$(sed -n 's/.*\"Config\":\"\\([^\"]*\\)\".*/\\1/p' manifest.json); \
         sed 's/\"architecture\":\"[a-z0-9]*\"/\"architecture\":\"s390x\"/' \"$config\" >foreign.json; \
         sed \"s/$config/foreign.json/; s#ci/busybox:1#ci/foreign:1#\" manifest.json >manifest.new; mv manifest.new manifest.json; rm -f repositories; \
         tar -cf ../foreign.tar .; docker load -i ../foreign.tar",
    );
    let made = make.env("DOCKER_HOST", &engine.host).limit(LIMIT).finish();
    if !made.status.success() {
        ci_tests::skipped::because(&format!("no image of another processor can be made here: {}", made.stderr()));
        return;
    }
    let finished = engine.run(&workshop, &job("ci/foreign:1", &mark, "", "- {name: say, script: echo never}"), &[]).limit(LIMIT).ends(1);
    finished.says("s390x");
    engine.docker(&["rmi", "ci/foreign:1"]);
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}
