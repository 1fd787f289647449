use gt_executors::hosting::{HostingError, HostingRefusal, HostingTool, PullRequestHead};
use gt_testkit::FakeService;

use crate::support::{SERVICES, World, branch, marker, noon, with_each_service};

/// Every operation, by the name under which the service knows it.
const OPERATIONS: [&str; 6] = ["login", "find", "update", "list", "show", "feedback"];

fn ask(world: &World, operation: &str) -> Result<(), HostingError> {
    let name = branch();
    let head = PullRequestHead { fork_owner: None, branch: &name };
    let marker = marker(1);
    world.with(|tool: HostingTool<'_>| match operation {
        "login" => tool.login().map(drop),
        "find" => tool.find_open(head, &marker).map(drop),
        "update" => tool.update(1, "New", "Text"),
        "list" => tool.poll(&[1]).map(drop),
        _ => tool.show(1).map(drop),
    })
}

/// The error of each operation under a fault.
fn under(world: &World, fault: &str) -> Vec<(&'static str, HostingError)> {
    let tried = OPERATIONS.into_iter().map(|operation| {
        world.service.misbehave(fault, operation, 1);
        let failed = ask(world, operation).unwrap_err();
        world.service.behave();
        (operation, failed)
    });
    let failures = tried.collect();
    ask(world, "show").unwrap();
    failures
}

fn opened(service: FakeService) -> World {
    let world = World::new(service);
    world.open().unwrap();
    world
}

#[test]
fn a_missing_tool_is_named() {
    let world = World::new(FakeService::GitHub).with_program("/nonexistent/gh");
    for operation in OPERATIONS {
        let failed = ask(&world, operation).unwrap_err();
        let program = "/nonexistent/gh".to_owned();
        assert_eq!(failed, HostingError::ToolMissing { program });
    }
    let opened = world.open().unwrap_err();
    assert!(matches!(opened, HostingError::ToolMissing { .. }));
}

#[test]
fn a_lost_login_names_the_command_that_fixes_it() {
    for service in SERVICES {
        let world = opened(service);
        let host = if service == FakeService::GitHub { "github.com" } else { "gitlab.com" };
        let fix = format!("{} auth login --hostname {host}", service.tool());
        for (operation, failed) in under(&world, "logged-out") {
            let HostingError::LoggedOut { command, .. } = &failed else { panic!("{failed:?}") };
            assert_eq!(*command, fix, "{operation}");
        }
        world.service.misbehave("logged-out", "create", 1);
        world.service.person(["close", "1"]);
        assert!(matches!(world.open(), Err(HostingError::LoggedOut { .. })));
    }
    // A tool that reports it and ends well.
    let world = opened(FakeService::GitHub);
    world.service.misbehave("silently-logged-out", "show", 1);
    assert!(matches!(ask(&world, "show"), Err(HostingError::LoggedOut { .. })));
}

#[test]
fn a_rate_limit_says_until_when() {
    for service in SERVICES {
        let world = opened(service);
        // 12:10 of the same day.
        world.service.person(["set", "rate_limit_reset", "1780229400"]);
        for (operation, failed) in under(&world, "rate-limit") {
            let HostingError::RateLimited { until, .. } = failed else {
                panic!("{operation}: {failed:?}");
            };
            let expected = match service {
                FakeService::GitHub => "2026-05-31T12:10:00Z",
                FakeService::GitLab => "2026-05-31T12:01:00Z",
            };
            assert_eq!(until.to_string(), expected, "{operation}");
        }
        // Where the service does not say it, the file does.
        world.service.person(["set", "rate_limit_reset", "0"]);
        world.service.misbehave("rate-limit", "show", 1);
        world.service.misbehave("garbage", "rate_limit", 1);
        let Err(HostingError::RateLimited { until, .. }) = ask(&world, "show") else { panic!() };
        assert!(until > noon());
    }
}

#[test]
fn a_service_that_cannot_be_reached_is_told_from_a_refusal() {
    for service in SERVICES {
        let world = opened(service);
        for (operation, failed) in under(&world, "unreachable") {
            assert!(matches!(failed, HostingError::Unreachable { .. }), "{operation}: {failed:?}");
        }
        for (operation, failed) in under(&world, "refused") {
            let is_refused =
                matches!(failed, HostingError::Refused { reason: HostingRefusal::Other, .. });
            assert!(is_refused, "{operation}: {failed:?}");
        }
    }
}

#[test]
fn garbage_is_unreadable() {
    for service in SERVICES {
        let world = opened(service);
        for fault in ["garbage", "half-json"] {
            for operation in OPERATIONS.into_iter().filter(|operation| *operation != "update") {
                world.service.misbehave(fault, operation, 1);
                let failed = ask(&world, operation).unwrap_err();
                let is_unreadable = matches!(failed, HostingError::Unreadable { .. });
                assert!(is_unreadable, "{fault} {operation}: {failed:?}");
            }
        }
        // The pull request is there, although the answer could not be read.
        world.service.person(["close", "1"]);
        world.service.misbehave("garbage", "create", 1);
        let failed = world.open().unwrap_err();
        assert!(matches!(failed, HostingError::Unreadable { .. }), "{failed:?}");
        assert_eq!(world.open().unwrap().pull_request.number, 2);
    }
}

#[test]
fn an_answer_without_end_is_cut_off() {
    for service in SERVICES {
        let world = opened(service);
        world.service.misbehave("huge", "show", 1);
        let Err(HostingError::Unreadable { what, .. }) = ask(&world, "show") else { panic!() };
        assert!(what.contains("longer than"), "{what}");
    }
}

#[test]
fn a_slow_tool_is_ended_with_its_children() {
    with_each_service(|service| {
        let world = opened(service).impatient();
        world.service.misbehave("slow", "show", 1);
        let Err(HostingError::Unreachable { words }) = ask(&world, "show") else { panic!() };
        assert!(words.ends_with("did not answer within 8s"), "{words}");
        ask(&world, "show").unwrap();
    });
}

#[test]
fn access_that_cannot_be_asked_for_is_not_guessed() {
    let world = opened(FakeService::GitLab);
    world.service.person(["note", "1", "ada", "Please change"]);
    world.service.misbehave("unreachable", "access", 1);
    assert!(matches!(ask(&world, "show"), Err(HostingError::Unreachable { .. })));
    world.service.misbehave("unreachable", "checks", 1);
    assert!(matches!(ask(&world, "show"), Err(HostingError::Unreachable { .. })));
    ask(&world, "show").unwrap();
}
