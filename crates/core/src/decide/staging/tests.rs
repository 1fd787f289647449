use proptest::prelude::*;

use super::*;

fn id(text: &str) -> BeadId {
    BeadId::parse(text).unwrap()
}

fn rig(slug: &str, state: RigState) -> MemberRole {
    MemberRole::Work(Some((RigSlug::parse(slug).unwrap(), state)))
}

fn task(name: &str, waits_for: &[usize]) -> StagedMember {
    StagedMember {
        id: id(&format!("we-{name}")),
        part: rig("web", RigState::Active),
        waits_for: waits_for.to_vec(),
        awaited_children: Vec::new(),
        gates: Vec::new(),
    }
}

fn plan(members: Vec<StagedMember>) -> StagePlan {
    stage(&StageFacts { members, ..StageFacts::default() })
}

fn categories(plan: &StagePlan) -> Vec<&'static str> {
    plan.findings.iter().map(|finding| finding.category.as_str()).collect()
}

#[test]
fn a_wave_holds_the_members_that_can_run_at_once() {
    let members = vec![task("a", &[]), task("b", &[0]), task("c", &[0, 1]), task("d", &[])];
    let plan = plan(members);
    assert_eq!(plan.waves, [vec![0, 3], vec![1], vec![2]]);
    assert_eq!(categories(&plan), [""; 0]);
}

#[test]
fn a_closed_member_is_in_no_wave_and_holds_up_no_other() {
    let mut done = task("a", &[]);
    done.part = MemberRole::Over;
    done.gates = vec![id("we-x")];
    let plan = plan(vec![done, task("b", &[0]), task("c", &[1])]);
    assert_eq!(plan.waves, [vec![1], vec![2]]);
    assert_eq!((plan.gated, plan.findings), (vec![], vec![]));
}

#[test]
fn failed_work_that_a_member_waits_for_is_to_be_tried_again() {
    let mut failed = task("a", &[]);
    failed.part = MemberRole::Over;
    let mut waiter = task("b", &[]);
    waiter.gates = vec![failed.id.clone()];
    let plan = plan(vec![failed, waiter]);
    assert_eq!(categories(&plan), ["gated"]);
    assert_eq!(plan.findings[0].message, "we-a failed and has to be done first for we-b");
    assert_eq!(plan.findings[0].suggested_fix.as_deref(), Some("gt scheduler retry we-a"));
}

#[test]
fn waiting_for_a_frame_is_waiting_for_all_its_parts_and_no_longer() {
    let mut frame = task("epic", &[]);
    frame.part = MemberRole::Frame(vec![0, 1]);
    let plan = plan(vec![task("a", &[]), task("b", &[0]), frame, task("c", &[2])]);
    assert_eq!(plan.waves, [vec![0], vec![1], vec![3]]);
}

#[test]
fn a_bead_comes_after_the_children_that_it_waits_for() {
    let mut waiter = task("a", &[]);
    waiter.awaited_children = vec![1];
    assert_eq!(plan(vec![waiter, task("b", &[])]).waves, [vec![1], vec![0]]);
}

#[test]
fn a_cycle_through_beads_outside_the_set_is_an_error() {
    let mut member = task("a", &[]);
    member.gates = vec![id("we-x")];
    let outside = vec![
        (id("we-x"), vec![id("we-y"), id("we-z")]),
        (id("we-y"), vec![member.id.clone()]),
        (id("we-z"), vec![]),
    ];
    let facts = StageFacts { members: vec![member], outside, ..StageFacts::default() };
    let plan = stage(&facts);
    assert_eq!(categories(&plan), ["cycle", "gated"]);
    assert_eq!(plan.findings[0].message, "they wait for each other: we-a → we-x → we-y → we-a");
    assert!(plan.has_errors());

    // A cycle that no member is in is not the set's own.
    let mut behind = task("a", &[]);
    behind.gates = vec![id("we-x")];
    let outside = vec![(id("we-x"), vec![id("we-y")]), (id("we-y"), vec![id("we-x")])];
    let facts = StageFacts { members: vec![behind], outside, ..StageFacts::default() };
    assert_eq!(categories(&stage(&facts)), ["gated"]);
}

#[test]
fn only_findings_that_break_the_plan_need_force() {
    let forced = [FindingCategory::BlockedRig, FindingCategory::MissingBranch];
    for category in [FindingCategory::Cycle, FindingCategory::NoRig] {
        assert!(category.is_error() && !category.needs_force(), "{category}");
    }
    for category in [
        FindingCategory::Orphan,
        FindingCategory::CrossRig,
        FindingCategory::Capacity,
        FindingCategory::MissingAgent,
        FindingCategory::Gated,
    ] {
        assert!(!category.is_error() && !category.needs_force(), "{category}");
    }
    assert!(forced.iter().all(|category| category.needs_force() && !category.is_error()));
}

#[test]
fn an_agent_that_is_missing_is_told_for_the_rigs_of_the_set() {
    let why = "the agent claude needs claude, which is not installed";
    let missing = |rig: &str| (RigSlug::parse(rig).unwrap(), why.to_owned());
    let facts = StageFacts {
        members: vec![task("a", &[]), task("b", &[])],
        missing_agents: vec![missing("web"), missing("other")],
        ..StageFacts::default()
    };
    let plan = stage(&facts);
    assert_eq!(categories(&plan), ["missing-agent"]);
    assert_eq!(plan.findings[0].message, format!("the rig web starts nothing: {why}"));
    assert_eq!(plan.findings[0].beads.len(), 2);
    assert!(!plan.has_errors());
}

#[test]
fn a_cycle_is_an_error_that_names_its_beads() {
    let plan = plan(vec![
        task("a", &[1]),
        task("b", &[2]),
        task("c", &[0]),
        task("d", &[2]),
        task("e", &[4]),
    ]);
    assert!(plan.has_errors());
    assert_eq!(categories(&plan), ["cycle", "cycle"]);
    assert_eq!(plan.findings[0].message, "they wait for each other: we-a → we-b → we-c → we-a");
    assert_eq!(plan.findings[0].suggested_fix.as_deref(), Some("bd dep remove we-c we-a"));
    assert_eq!(plan.findings[1].message, "they wait for each other: we-e → we-e");
    assert!(plan.waves.is_empty(), "a member behind a cycle never starts either");
}

#[test]
fn a_member_that_waits_for_a_frame_that_waits_for_it_never_starts() {
    let mut frame = task("epic", &[]);
    frame.part = MemberRole::Frame(vec![2]);
    let plan = plan(vec![task("a", &[1]), frame, task("x", &[0])]);
    assert_eq!(categories(&plan), ["cycle"]);
    assert_eq!(plan.findings[0].message, "they wait for each other: we-a → we-epic → we-x → we-a");
    assert_eq!(plan.findings[0].suggested_fix.as_deref(), Some("bd dep remove we-x we-a"));
}

#[test]
fn a_long_cycle_is_shortened_in_the_message_and_complete_in_the_finding() {
    let members: Vec<StagedMember> =
        (0..10_000).map(|n| task(&format!("n{n}"), &[(n + 1) % 10_000])).collect();
    let plan = plan(members);
    let [cycle] = plan.findings.as_slice() else { panic!("{:?}", categories(&plan)) };
    assert_eq!(cycle.beads.len(), 10_000);
    assert!(cycle.message.contains("… 9992 more … → we-n9999 → we-n0"), "{}", cycle.message);
}

#[test]
fn work_without_a_rig_is_an_error() {
    let mut homeless = task("a", &[]);
    homeless.part = MemberRole::Work(None);
    let plan = plan(vec![homeless, task("b", &[])]);
    assert!(plan.has_errors());
    assert_eq!(plan.findings[0].beads, [id("we-a")]);
    assert_eq!(plan.findings[0].message, "no rig does 1 bead: we-a");
}

#[test]
fn an_open_bead_outside_the_set_gates_and_is_named() {
    let mut gated = task("a", &[]);
    gated.gates = vec![id("ap-9")];
    let plan = plan(vec![gated, task("b", &[0]), task("c", &[])]);
    assert_eq!(plan.waves, [vec![2]]);
    assert_eq!(plan.gated, [(0, vec![id("ap-9")]), (1, vec![id("we-a")])]);
    assert_eq!(categories(&plan), ["gated"]);
    assert!(!plan.has_errors());
    assert!(plan.findings[0].message.starts_with("ap-9 is not part of it"));
}

#[test]
fn rigs_that_start_nothing_and_several_rigs_are_warnings() {
    let mut elsewhere = task("x", &[]);
    elsewhere.part = rig("api", RigState::Docked);
    let plan = plan(vec![task("a", &[]), task("b", &[]), elsewhere]);
    assert_eq!(categories(&plan), ["blocked-rig", "cross-rig"]);
    assert_eq!(plan.findings[0].suggested_fix.as_deref(), Some("gt rig undock api"));
    assert_eq!(plan.findings[1].message, "it is work for 2 rigs: api (1), web (2)");
    assert_eq!(plan.findings[1].beads, [id("we-x")]);
}

#[test]
fn only_below_an_epic_a_bead_alone_is_worth_a_word() {
    let members = vec![task("a", &[]), task("b", &[0]), task("c", &[])];
    let facts = StageFacts { members, is_epic: true, ..StageFacts::default() };
    let staged = stage(&facts);
    assert_eq!(categories(&staged), ["orphan"]);
    assert_eq!(staged.findings[0].beads, [id("we-c")]);
    assert_eq!(categories(&stage(&StageFacts { is_epic: false, ..facts })), [""; 0]);
}

#[test]
fn more_at_once_than_there_is_room_for_is_told_of_the_widest_wave() {
    let members = vec![task("a", &[]), task("b", &[0]), task("c", &[0]), task("d", &[0])];
    let facts = StageFacts { members, cap: Some(2), ..StageFacts::default() };
    let plan = stage(&facts);
    assert_eq!(categories(&plan), ["capacity"]);
    assert!(
        plan.findings[0].message.starts_with("wave 2 has 3 beads, and there is room for 2 workers")
    );
    assert_eq!(categories(&stage(&StageFacts { cap: Some(3), ..facts })), [""; 0]);
}

/// The members that must be done before a member: its own dependencies, and those behind frames.
fn before(members: &[StagedMember], at: usize, found: &mut Vec<usize>) {
    let parts: Vec<usize> = match &members[at].part {
        MemberRole::Over => vec![],
        MemberRole::Frame(parts) => parts.clone(),
        MemberRole::Work(_) => members[at].waits_for.clone(),
    };
    for part in parts {
        match members[part].part {
            MemberRole::Over => {}
            MemberRole::Frame(_) => before(members, part, found),
            MemberRole::Work(_) => found.push(part),
        }
    }
}

proptest! {
    #[test]
    fn a_member_is_in_the_wave_after_its_last_dependency(
        edges in prop::collection::vec(prop::collection::vec(0_usize..40, 0..4), 40),
        gated in prop::collection::vec(prop::bool::weighted(0.1), 40),
        over in prop::collection::vec(prop::bool::weighted(0.2), 40),
        frames in prop::collection::vec(prop::bool::weighted(0.1), 40),
    ) {
        // Only backwards, so that there is no cycle.
        let members: Vec<StagedMember> = edges.iter().enumerate().map(|(at, targets)| {
            let targets: Vec<usize> = targets.iter().copied().filter(|target| *target < at).collect();
            let mut member = task(&format!("n{at}"), &targets);
            if gated[at] {
                member.gates = vec![id("ap-1")];
            }
            if over[at] {
                member.part = MemberRole::Over;
            } else if frames[at] {
                member.part = MemberRole::Frame(std::mem::take(&mut member.waits_for));
            }
            member
        }).collect();
        let plan = plan(members.clone());
        let wave_of = |at: usize| plan.waves.iter().position(|wave| wave.contains(&at));
        let is_gated = |at: usize| plan.gated.iter().any(|(one, _)| *one == at);
        for (at, member) in members.iter().enumerate() {
            let MemberRole::Work(_) = member.part else {
                prop_assert_eq!((wave_of(at), is_gated(at)), (None, false));
                continue;
            };
            prop_assert!(wave_of(at).is_some() != is_gated(at), "{} is in one place", member.id);
            if let Some(wave) = wave_of(at) {
                let mut first = Vec::new();
                before(&members, at, &mut first);
                let last = first.iter().map(|one| wave_of(*one).map_or(usize::MAX, |wave| wave + 1)).max();
                prop_assert_eq!(wave, last.unwrap_or(0));
            }
        }
        prop_assert!(!plan.has_errors());
    }
}
