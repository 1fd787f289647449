use gt_executors::hosting::{HostingError, HostingRefusal, PullRequestHead};
use gt_testkit::FakeService;

use crate::support::{SERVICES, World, branch, marker, with_each_service};

#[test]
fn a_pull_request_is_opened_with_its_text() {
    for service in SERVICES {
        let world = World::new(service);
        let opened = world.open().unwrap();
        assert!(!opened.was_there);
        assert_eq!(opened.pull_request.number, 1);
        assert!(opened.pull_request.url.starts_with("https://"), "{}", opened.pull_request.url);
        let stored = &world.service.pull_requests()[0];
        assert_eq!(stored["title"], "Log in & out @all");
        let body = stored["body"].as_str().unwrap();
        assert!(
            body.starts_with("Let people\n\n\"log in\" 'and' out: ${HOME} {number}\n"),
            "{body}"
        );
        assert!(body.ends_with("\nRun: web-1#1  \nRequest: web-1@1\n"), "{body}");
        assert_eq!((&stored["head"], &stored["base"]), (&branch().into(), &"main".into()));
        let directory = world.directory().canonicalize().unwrap();
        for call in world.service.calls() {
            assert_eq!(call["cwd"].as_str(), directory.to_str(), "it runs in a directory of ours");
        }
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "nothing is left behind");
    }
}

#[test]
fn an_open_one_is_found_again_by_branch_and_marker() {
    for service in SERVICES {
        let world = World::new(service);
        let name = branch();
        let head = PullRequestHead { fork_owner: None, branch: &name };
        let find = |number| world.with(|tool| tool.find_open(head, &marker(number))).unwrap();
        assert_eq!(find(1), None);
        world.open().unwrap();
        assert_eq!(find(1).unwrap().number, 1);
        // A repair goes on with the same pull request.
        assert_eq!(find(2).unwrap().number, 1);
        let again = world.open_for(&marker(2), None).unwrap();
        assert!(again.was_there && again.pull_request.number == 1);
        world.service.person(["close", "1"]);
        assert_eq!(find(1), None, "an old closed one is not it");
        let new = world.open().unwrap();
        assert!(!new.was_there && new.pull_request.number == 2);
    }
}

#[test]
fn one_without_our_marker_is_not_taken_over() {
    for service in SERVICES {
        let world = World::new(service);
        world.open().unwrap();
        world.service.person(["edit", "1", "I have opened this by hand.\n\nRequest: web-2@1"]);
        let refused = world.open().unwrap_err();
        let HostingError::Refused { reason: HostingRefusal::ForeignPullRequest, words } = refused
        else {
            panic!("{refused:?}");
        };
        assert!(words.contains("https://") && words.contains(&branch()), "{words}");
        assert_eq!(world.service.pull_requests().len(), 1);
    }
}

#[test]
fn one_whose_answer_was_lost_is_adopted() {
    for service in SERVICES {
        for fault in ["half-created", "half-created-silent"] {
            let world = World::new(service);
            world.service.misbehave(fault, "create", 1);
            let opened = world.open().unwrap();
            assert!(opened.was_there && opened.pull_request.number == 1, "{fault}");
            assert_eq!(world.service.pull_requests().len(), 1);
        }
    }
}

#[test]
fn one_whose_answer_was_lost_is_adopted_later() {
    for service in SERVICES {
        let world = World::new(service);
        world.service.misbehave("half-created", "create", 1);
        // The question before the try is answered, the one after it is not.
        world.service.misbehave("unreachable", "find-again", 1);
        let failed = world.open().unwrap_err();
        assert!(matches!(failed, HostingError::Unreachable { .. }), "{failed:?}");
        assert_eq!(world.service.pull_requests().len(), 1);
        let opened = world.open().unwrap();
        assert!(opened.was_there && opened.pull_request.number == 1);
        assert_eq!(world.service.pull_requests().len(), 1);
    }
}

#[test]
fn one_that_is_created_after_the_time_limit_is_adopted() {
    with_each_service(|service| {
        let world = World::new(service).impatient();
        world.service.misbehave("half-created-slow", "create", 1);
        let opened = world.open().unwrap();
        assert!(opened.was_there && opened.pull_request.number == 1);
        assert_eq!(world.service.pull_requests().len(), 1);
    });
}

#[test]
fn title_and_text_are_changed() {
    for service in SERVICES {
        let world = World::new(service);
        world.open().unwrap();
        let long = format!("{}\nRequest: web-1@2\n", "ü".repeat(60_000));
        world.with(|tool| tool.update(1, "New title", &long)).unwrap();
        let stored = &world.service.pull_requests()[0];
        assert_eq!((&stored["title"], &stored["body"]), (&"New title".into(), &long.into()));
        let unknown = world.with(|tool| tool.update(9, "x", "y")).unwrap_err();
        let is_not_found =
            matches!(unknown, HostingError::Refused { reason: HostingRefusal::NotFound, .. });
        assert!(is_not_found, "{unknown:?}");
    }
}

#[test]
fn a_fork_is_named_where_the_service_can() {
    let world = World::new(FakeService::GitHub);
    let opened = world.open_for(&marker(1), Some("robot")).unwrap();
    assert_eq!(opened.pull_request.number, 1);
    assert_eq!(world.service.pull_requests()[0]["head_owner"], "robot");
    let name = branch();
    let of = |fork_owner| PullRequestHead { fork_owner, branch: &name };
    let find = |head| world.with(|tool| tool.find_open(head, &marker(1))).unwrap();
    assert_eq!(find(of(Some("Robot"))).unwrap().number, 1);
    assert_eq!(find(of(None)), None, "the branch of a fork is another branch");

    let world = World::new(FakeService::GitLab);
    let refused = world.open_for(&marker(1), Some("robot")).unwrap_err();
    let is_not_supported =
        matches!(refused, HostingError::Refused { reason: HostingRefusal::NotSupported, .. });
    assert!(is_not_supported, "{refused:?}");
}

#[test]
fn a_refusal_has_the_words_of_the_service() {
    for service in SERVICES {
        let world = World::new(service);
        world.service.misbehave("refused", "create", 1);
        let refused = world.open().unwrap_err();
        let HostingError::Refused { reason: HostingRefusal::Other, words } = refused else {
            panic!("{refused:?}");
        };
        assert!(words.contains("HTTP 4"), "{words}");
        world.service.misbehave("forbidden", "create", 1);
        let refused = world.open().unwrap_err();
        let is_protected =
            matches!(refused, HostingError::Refused { reason: HostingRefusal::Protected, .. });
        assert!(is_protected, "{refused:?}");
    }
}
