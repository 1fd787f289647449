//! The container, as far as it can be seen without an engine: its files are read, and what the image would start is
//! started with its environment, in a directory that plays the volume.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use gt_testkit::{Cluster, FinishedProgram, Sandbox, SandboxCommand, wait_until, write_program};
use serde_json::{Value, json};

use crate::serving::{Served, text};
use crate::support::{files_in, nowhere};

/// The user that the image works as.
const USER: u32 = 10_001;
/// The user `nobody`, which a host may give to a container in place of root.
const HOST_GIVEN_USER: u32 = 65_534;
/// The shape of the compose file in the work queue's specification.
const PLAIN: &str = "crates/cli/tests/fixtures/containers/plain.yml";
const OURS: &str = "docker-compose.yml";
const CI: &str = ".github/workflows/ci.yml";

#[track_caller]
fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[track_caller]
fn yaml(path: &str) -> Value {
    serde_yaml_ng::from_str(&file(path)).unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(text).collect()
}

/// The instructions of the Dockerfile: the word and the rest.
fn all_instructions() -> Vec<(String, String)> {
    let whole = file("Dockerfile").replace("\\\n", " ");
    let lines = whole.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs.map(|(word, rest)| (word.to_owned(), rest.trim().to_owned())).collect()
}

/// Those of its last stage, which is the work queue.
fn instructions() -> Vec<(String, String)> {
    let all = all_instructions();
    let last = all.iter().rposition(|(word, _)| word == "FROM").unwrap();
    all[last..].to_vec()
}

#[track_caller]
fn instruction(name: &str) -> String {
    instructions().into_iter().find(|(word, _)| word == name).unwrap().1
}

#[track_caller]
fn words(json: &str) -> Vec<String> {
    texts(&serde_json::from_str(json).unwrap())
}

/// The environment variables that the image sets.
fn image_environment() -> BTreeMap<String, String> {
    let variables = instruction("ENV");
    let pairs = variables.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The same with the additions of a compose file, where the caller's shell has set no variable.
fn environment_of(service: &Value) -> BTreeMap<String, String> {
    let mut all = image_environment();
    match &service["environment"] {
        Value::Array(pairs) => all.extend(pairs.iter().map(|pair| {
            let (name, value) = pair.as_str().unwrap().split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        })),
        Value::Object(pairs) => all.extend(
            pairs.iter().map(|(name, value)| (name.clone(), unless_set(value.as_str().unwrap()))),
        ),
        other => panic!("{other} is no environment"),
    }
    all
}

/// `${NAME:-value}` where NAME is not set.
fn unless_set(text: &str) -> String {
    match text.split_once("${") {
        Some((before, rest)) => {
            let (variable, after) = rest.split_once('}').unwrap();
            let (_, value) = variable.split_once(":-").unwrap();
            format!("{before}{value}{}", unless_set(after))
        }
        None => text.to_owned(),
    }
}

/// A place for the files of a container, which its user may read.
fn place() -> Sandbox {
    let place = nowhere();
    // Sandboxes are private to the user of the tests; another user needs access here.
    fs::set_permissions(place.root(), Permissions::from_mode(0o755)).unwrap();
    let programs = place.make_dir(place.root().join("bin"));
    write_program(programs.join("gt"), fs::read(place.gt_path()).unwrap());
    let entry = programs.join("entrypoint.sh");
    write_program(&entry, file("packaging/entrypoint.sh"));
    place.in_dir(place.make_dir(place.root().join("data")))
}

fn data(place: &Sandbox) -> PathBuf {
    place.root().join("data")
}

fn is_root(place: &Sandbox) -> bool {
    place.command("id").arg("-u").run().ok().line() == "0"
}

/// Runs a command in the image, or its default command. `before` is the command with which an engine wraps it.
fn enter(
    place: &Sandbox,
    before: &[&str],
    environment: &BTreeMap<String, String>,
    command: &[&str],
) -> SandboxCommand {
    let own = words(&instruction("CMD"));
    let entry = words(&instruction("ENTRYPOINT"));
    let mut line: Vec<&str> = before.to_vec();
    line.extend(entry.iter().map(String::as_str));
    if command.is_empty() {
        line.extend(own.iter().map(String::as_str));
    } else {
        line.extend(command);
    }
    // `env`, so that programs are looked for where the image has them.
    let system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let path = format!("{}:{system}", place.root().join("bin").display());
    let mut started = place.command("/usr/bin/env").args(line).env("PATH", path);
    for (name, value) in environment {
        let value = match value.strip_prefix("/data") {
            Some(below) => format!("{}{below}", data(place).display()),
            // Whichever is free: the port of a container is its own, and ours are not.
            None if name == "PORT" => "0".to_owned(),
            None => value.clone(),
        };
        started = started.env(name, value);
    }
    started
}

/// Starts the image and waits until it says where it listens.
#[track_caller]
fn start(place: Sandbox, before: &[&str], environment: &BTreeMap<String, String>) -> Served {
    let running = enter(&place, before, environment, &[]).start();
    let said = "Listening on http://0.0.0.0:";
    wait_until("the container listens, or has ended", || {
        running.stdout().contains("Ctrl-C") || running.stderr().contains("Error")
    });
    let stdout = running.stdout();
    let port = stdout.split(said).nth(1).and_then(|rest| rest.lines().next());
    let port = port.unwrap_or_else(|| panic!("{stdout}\n{}", running.stderr()));
    Served { town: place, address: format!("127.0.0.1:{port}"), running }
}

/// Asks for the health as `test` of a compose file does.
#[track_caller]
fn is_healthy(server: &Served, test: &Value) {
    let port = server.address.rsplit(':').next().unwrap();
    let words: Vec<String> =
        texts(test).iter().map(|word| word.replace("8080", port)).skip(1).collect();
    let health = server.town.command(&words[0]).args(&words[1..]).run().ok().json();
    assert_eq!(health["status"], "ok");
}

/// A line of what the kernel knows about a process.
fn status_of(process: u32, key: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_dropped_everything(server: &Served) {
    let process = server.running.id();
    let user = [USER.to_string().as_str(); 4].join(" ");
    assert_eq!(status_of(process, "Uid"), user);
    assert_eq!(status_of(process, "Gid"), user);
    assert_eq!(status_of(process, "Groups"), "");
    assert_eq!(status_of(process, "NoNewPrivs"), "1");
    for capabilities in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(u64::from_str_radix(&status_of(process, capabilities), 16), Ok(0));
    }
}

fn warnings(ran: &FinishedProgram) -> usize {
    ran.stderr.matches("warning:").count()
}

/// Ends it as an engine does.
#[track_caller]
fn stop(server: Served) -> (Sandbox, FinishedProgram) {
    let process = server.running.id().to_string();
    server.town.command("kill").args(["-TERM", &process]).run().ok();
    (server.town, server.running.wait().ok())
}

#[test]
fn the_compose_file_of_the_specification_runs_unchanged() {
    let service = &yaml(PLAIN)["services"]["work-queue-api"];
    let environment = environment_of(service);
    let place = place();
    let is_root = is_root(&place);
    if is_root {
        // An engine makes the directory as root; there may be files of an earlier container in it.
        chown(data(&place), Some(0), Some(0)).unwrap();
        fs::write(data(&place).join("older"), "").unwrap();
    }

    let server = start(place, &[], &environment);
    is_healthy(&server, &service["healthcheck"]["test"]);
    let id = server.submit("Water the plants");
    if is_root {
        has_dropped_everything(&server);
        for name in ["", "older", "work_queue.db"] {
            let owner = data(&server.town).join(name).metadata().unwrap();
            assert_eq!((owner.uid(), owner.gid()), (USER, USER), "{name}");
        }
    }
    let (place, ran) = stop(server);
    assert_eq!(warnings(&ran), 1, "{ran}");

    // The data is there when the container starts again.
    let server = start(place, &[], &environment);
    assert_eq!(server.get(&format!("/work/{id}")).is(200).json()["status"], "queued");
    stop(server);
}

#[test]
fn ours_needs_no_more_of_root_than_it_is_given() {
    let service = &yaml(OURS)["services"]["work-queue"];
    let given: Vec<String> =
        texts(&service["cap_add"]).iter().map(|name| format!("+{}", name.to_lowercase())).collect();
    let bounds = format!("--bounding-set=-all,{}", given.join(","));
    let place = place();
    // Only root has something to give up.
    let before: &[&str] =
        if is_root(&place) { &["setpriv", &bounds, "--no-new-privs"] } else { &[] };

    let mut environment = environment_of(service);
    let server = start(place, before, &environment);
    is_healthy(&server, &service["healthcheck"]["test"]);
    server.submit("Water the plants");
    if !before.is_empty() {
        has_dropped_everything(&server);
    }
    let (place, _) = stop(server);

    // Others are let in with tokens, which can be made before anything runs.
    environment.insert("GT_INSECURE".to_owned(), "0".to_owned());
    let make = ["gt", "token", "create", "steve-w", "--scope", "work", "--json"];
    let made = enter(&place, before, &environment, &make).run().ok().json();
    let server = start(place, before, &environment);
    server.get("/work").is(401);
    let bearer = format!("Bearer {}", text(&made["token"]));
    let list = server.ask("GET", "/work", &[("authorization", &bearer)], "").is(200).json();
    assert_eq!(list[0]["description"], "Water the plants");
    // A backup is made while it runs.
    let backup = ["gt", "store", "backup", "backup.db"];
    enter(&server.town, before, &environment, &backup).run().ok();
    let backup = enter(&server.town, before, &environment, &backup[..3]).run().fails(1);
    assert!(backup.stderr.contains("name the file"), "{backup}");
    let check = ["gt", "store", "check"];
    enter(&server.town, before, &environment, &check).run().ok();
    assert_eq!(data(&server.town).join("backup.db").metadata().unwrap().uid(), {
        data(&server.town).join("work_queue.db").metadata().unwrap().uid()
    });
    let (_, ran) = stop(server);
    assert_eq!(warnings(&ran), 0, "{ran}");
}

#[test]
fn a_container_that_is_given_a_user_stays_that_user() {
    let place = place();
    let user = format!("--reuid={HOST_GIVEN_USER}");
    let group = format!("--regid={HOST_GIVEN_USER}");
    let is_root = is_root(&place);
    let before: &[&str] = if is_root { &["setpriv", &user, &group, "--clear-groups"] } else { &[] };
    let environment = image_environment();

    if is_root {
        // A directory that it may not write is an error, and its permissions are not changed.
        let ran = enter(&place, before, &environment, &[]).run().fails(1);
        assert!(ran.stderr.contains("cannot be written; check the permissions"), "{ran}");
        assert_eq!(files_in(data(&place)), [""; 0]);
        chown(data(&place), Some(HOST_GIVEN_USER), Some(HOST_GIVEN_USER)).unwrap();
    }
    let server = start(place, before, &environment);
    server.submit("Water the plants");
    if is_root {
        assert!(status_of(server.running.id(), "Uid").starts_with(&HOST_GIVEN_USER.to_string()));
    }
    // The image asks for its own health, at whichever port it was given.
    let health = instruction("HEALTHCHECK");
    let health = words(health.split_once("CMD ").unwrap().1);
    let port = server.address.rsplit(':').next().unwrap();
    let asked = server.town.command(&health[0]).args(&health[1..]).env("PORT", port);
    assert_eq!(asked.run().ok().json()["status"], "ok");
    stop(server);
}

#[test]
fn on_postgresql_nothing_is_kept_in_the_volume() {
    let place = place();
    let mut environment = environment_of(&yaml(OURS)["services"]["work-queue"]);
    environment.insert("DATABASE_URL".to_owned(), Cluster::shared().fresh_database());
    environment.remove("PGPASSWORD");

    let server = start(place, &[], &environment);
    server.submit("Water the plants");
    let (place, _) = stop(server);

    assert_eq!(files_in(data(&place)), [""; 0]);
}

#[test]
fn our_compose_file_listens_on_loopback_and_starts_postgresql_only_on_request() {
    let ours = yaml(OURS);
    let plain = &yaml(PLAIN)["services"]["work-queue-api"];
    let services = ours["services"].as_object().unwrap();
    for (name, service) in services {
        let ports = service["ports"].as_array().into_iter().flatten();
        for port in ports.map(text) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
        assert!(service["healthcheck"]["test"].is_array() && service["volumes"].is_array());
    }
    let queue = &services["work-queue"];
    assert_eq!(queue["profiles"], Value::Null);
    assert_eq!(queue["healthcheck"]["test"], plain["healthcheck"]["test"]);
    let environment = environment_of(queue);
    assert_eq!(environment, {
        let mut expected = environment_of(plain);
        expected.insert("PGPASSWORD".to_owned(), "gt".to_owned());
        expected
    });
    let postgres = &services["postgres"];
    assert_eq!(postgres["profiles"], json!(["postgres"]));
    assert_eq!(postgres["ports"], Value::Null);
    let needs = &queue["depends_on"]["postgres"];
    assert_eq!(needs, &json!({"condition": "service_healthy", "required": false}));
    let password = &postgres["environment"]["POSTGRES_PASSWORD"];
    assert_eq!(password, &queue["environment"]["PGPASSWORD"]);
}

#[test]
fn the_image_of_a_town_is_never_root_and_wants_tokens() {
    let all = all_instructions();
    let is_town = |(word, rest): &(String, String)| word == "FROM" && rest.ends_with(" AS gt");
    let first = all.iter().position(is_town).unwrap();
    let rest = &all[first + 1..];
    let end = rest.iter().position(|(word, _)| word == "FROM").expect("the work queue comes last");
    let of = |name: &str| -> Vec<&str> {
        let fits = rest[..end].iter().filter(|(word, _)| word == name);
        fits.map(|(_, rest)| rest.as_str()).collect()
    };
    assert_eq!(of("USER"), ["10001:10001"]);
    assert_eq!(of("ENTRYPOINT"), ["[\"gt\"]"]);
    assert_eq!(words(of("CMD")[0]), ["serve", "--bind", "0.0.0.0", "--require-token"]);
    assert_eq!(of("HEALTHCHECK").len(), 1);
    assert_eq!(of("VOLUME"), ["/town"]);
    assert!(!of("ENV")[0].contains("GT_INSECURE"), "{}", of("ENV")[0]);
    // A server without a token refuses to start, and says what to do.
    let place = nowhere();
    place.gt(["install", "."]).ok();
    let refused = place.gt(["serve", "--bind", "0.0.0.0:0", "--require-token"]);
    assert!(refused.fails(1).stderr.contains("gt token create"));
}

#[test]
fn the_image_is_built_from_what_the_context_has() {
    let allowed = file(".dockerignore");
    let allowed: Vec<&str> = allowed.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let whole = file("Dockerfile").replace("\\\n", " ");
    let copied: Vec<&str> = whole
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .filter(|rest| !rest.contains("--from="))
        .flat_map(|rest| {
            let words: Vec<&str> = rest.split(' ').filter(|word| !word.starts_with("--")).collect();
            words[..words.len() - 1].to_vec()
        })
        .collect();
    assert_eq!(copied, ["Cargo.toml", "Cargo.lock", "crates", "packaging/entrypoint.sh"]);
    for source in copied {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(root.join(source).exists(), "{source}");
        assert!(allowed.contains(&source.split('/').next().unwrap()), "{source}");
    }
    // The program that is built is the one that this workspace says it needs.
    let rust = env!("CARGO_PKG_RUST_VERSION");
    assert!(whole.contains(&format!("FROM rust:{rust}-slim")), "{rust}");
    assert!(file(CI).contains(&format!("rustup default {rust}")));
}

#[test]
fn the_jobs_of_the_workflow_run_every_part_of_the_tests() {
    let workflow = yaml(CI);
    let jobs = workflow["jobs"].as_object().unwrap();
    let runs = |job: &str| -> Vec<String> {
        let steps = jobs[job]["steps"].as_array().unwrap().iter();
        steps.filter_map(|step| step["run"].as_str()).map(str::to_owned).collect()
    };
    let mut parts = Vec::new();
    for job in ["lint", "test", "postgres", "chaos", "agents", "browser"] {
        assert_eq!(jobs[job]["needs"], Value::Null, "{job} waits for another");
        let named = runs(job);
        let named = named.iter().filter_map(|run| run.strip_prefix("scripts/test --only "));
        parts.extend(named.flat_map(|rest| rest.split(" --only ").map(str::to_owned)));
    }
    assert!(runs("dependencies").contains(&"scripts/deny advisories bans licenses sources".into()));
    assert!(runs("chaos").iter().any(|run| run.starts_with("scripts/sim ")));

    let script = file("scripts/test");
    let mut known: Vec<&str> = script
        .lines()
        .filter_map(|line| line.strip_prefix("if wants "))
        .filter_map(|rest| rest.split([' ', ';']).next())
        .collect();
    parts.sort_unstable();
    known.sort_unstable();
    assert_eq!(parts, known);
}

#[test]
fn the_workflow_pushes_from_main_alone_and_trusts_what_it_names() {
    let workflow = yaml(CI);
    assert_eq!(workflow["permissions"], json!({"contents": "read"}));
    let jobs = workflow["jobs"].as_object().unwrap();
    for (name, job) in jobs {
        assert!(job["timeout-minutes"].is_number(), "{name}");
        for step in job["steps"].as_array().unwrap() {
            let Some(action) = step["uses"].as_str() else { continue };
            let (action, commit) = action.split_once('@').unwrap();
            let is_digit = |digit: char| matches!(digit, '0'..='9' | 'a'..='f');
            assert!(
                commit.len() == 40 && commit.chars().all(is_digit),
                "{name}: {action}@{commit}"
            );
            if action == "actions/cache" {
                let key = text(&step["with"]["key"]);
                let older = text(&step["with"]["restore-keys"]);
                assert!(key.starts_with(&older) && key.len() > older.len(), "{name}: {older}");
            }
        }
    }
    // Every pin names the version that it is.
    for line in file(CI).lines().filter(|line| line.contains("uses: ")) {
        assert!(
            line.split_once(" # v").is_some_and(|(_, version)| version.contains('.')),
            "{line}"
        );
    }

    let image = &jobs["image"];
    let others: Vec<&String> = jobs.keys().filter(|name| *name != "image").collect();
    let mut needed = texts(&image["needs"]);
    needed.sort_unstable();
    assert_eq!(needed.iter().collect::<Vec<_>>(), others);
    let push = text(&image["env"]["PUSH"]);
    assert!(push.contains("refs/heads/main") && push.contains("vars.IMAGE"), "{push}");
    let steps = image["steps"].as_array().unwrap();
    let pushing: Vec<&Value> = steps.iter().filter(|step| step["with"]["push"] == true).collect();
    assert_eq!(pushing.len(), 1);
    assert_eq!(pushing[0]["if"], "env.PUSH == 'true'");
    let tags = text(&pushing[0]["with"]["tags"]);
    let tags: Vec<&str> = tags.lines().collect();
    assert_eq!(
        tags,
        ["${{ env.IMAGE }}:latest", "${{ env.IMAGE }}:${{ steps.names.outputs.commit }}"]
    );
}
