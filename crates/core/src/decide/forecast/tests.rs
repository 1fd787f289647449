use proptest::prelude::*;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn job(minutes: u32, waits_for: &[usize]) -> ForecastJob {
    ForecastJob {
        takes: MINUTE * minutes,
        waits_for: waits_for.to_vec(),
        rig: Some(0),
        ..ForecastJob::default()
    }
}

fn room(slots: Option<u32>) -> ForecastLimits {
    ForecastLimits { slots, rigs: Vec::new() }
}

fn minutes(jobs: &[ForecastJob], slots: Option<u32>) -> (u64, usize) {
    let forecast = forecast(jobs, &room(slots));
    (forecast.remaining.as_secs() / 60, forecast.left_out)
}

fn rig(slug: &str) -> RigSlug {
    RigSlug::parse(slug).unwrap()
}

#[test]
fn a_rig_has_its_own_pace_and_a_new_one_that_of_the_town() {
    assert_eq!(RunDurations::of(&[]), None);
    let past: Vec<(RigSlug, Duration)> = [("web", 1), ("web", 90), ("web", 3), ("api", 10)]
        .map(|(slug, minutes)| (rig(slug), MINUTE * minutes))
        .to_vec();
    let durations = RunDurations::of(&past).unwrap();
    assert_eq!(durations.of_rig(Some(&rig("web"))), MINUTE * 3);
    assert_eq!(durations.of_rig(Some(&rig("api"))), MINUTE * 10);
    assert_eq!(durations.of_rig(Some(&rig("new"))), MINUTE * 10, "the median of all four");
    assert_eq!(durations.of_rig(None), MINUTE * 10);
    assert_eq!(durations.left(Some(&rig("api")), MINUTE * 4), MINUTE * 6);
    assert_eq!(durations.left(Some(&rig("api")), MINUTE * 400), MINUTE, "it is overdue, not over");
}

#[test]
fn slots_and_waits_decide_how_long_it_takes() {
    let apart = [job(10, &[]), job(10, &[]), job(10, &[])];
    assert_eq!(minutes(&apart, None), (10, 0));
    assert_eq!(minutes(&apart, Some(2)), (20, 0));
    let chain = [job(10, &[]), job(5, &[0]), job(1, &[1])];
    assert_eq!(minutes(&chain, None), (16, 0));
    assert_eq!(minutes(&[], Some(1)), (0, 0));
    assert_eq!(minutes(&apart, Some(0)), (0, 3), "nothing ever begins");
}

#[test]
fn a_job_that_is_put_off_begins_at_its_time() {
    let put_off = |begins, job| ForecastJob { begins_in: MINUTE * begins, ..job };
    assert_eq!(minutes(&[put_off(60, job(10, &[]))], None), (70, 0));
    let behind_another = [job(90, &[]), put_off(60, job(10, &[0]))];
    assert_eq!(minutes(&behind_another, None), (100, 0), "its time has passed by then");
    let beside_another = [job(90, &[]), put_off(60, job(10, &[]))];
    assert_eq!(minutes(&beside_another, None), (90, 0));
    assert_eq!(minutes(&beside_another, Some(1)), (100, 0), "it takes no slot while it waits");
    let before_another = [put_off(60, job(10, &[])), job(5, &[0])];
    assert_eq!(minutes(&before_another, Some(1)), (75, 0));
    assert_eq!(minutes(&[put_off(60, job(10, &[]))], Some(0)), (0, 1), "nothing ever begins");
}

#[test]
fn a_rig_may_have_fewer_slots_than_the_town() {
    let jobs = [job(10, &[]), job(10, &[]), ForecastJob { rig: Some(1), ..job(10, &[]) }];
    let room = ForecastLimits { slots: Some(3), rigs: vec![Some(1), None] };
    assert_eq!(forecast(&jobs, &room).remaining, MINUTE * 20);
}

#[test]
fn a_running_job_goes_on_and_keeps_its_slot() {
    let running = ForecastJob { is_running: true, ..job(4, &[2]) };
    let jobs = [running, job(10, &[0]), job(10, &[])];
    assert_eq!(minutes(&jobs, Some(1)), (24, 0));
    let at_work = ForecastJob { is_running: true, ..job(1, &[]) };
    let jobs = [at_work.clone(), at_work.clone(), at_work, job(10, &[]), job(10, &[])];
    assert_eq!(minutes(&jobs, Some(1)), (21, 0), "the cap was lowered meanwhile");
}

#[test]
fn a_frame_takes_no_slot_and_no_time() {
    let frame = ForecastJob { waits_for: vec![0, 1], ..ForecastJob::default() };
    let jobs = [job(10, &[]), job(20, &[]), frame, job(5, &[2])];
    assert_eq!(minutes(&jobs, None), (25, 0));
    assert_eq!(critical_path(&jobs), [1, 3]);
}

#[test]
fn a_stuck_job_is_left_out_with_everything_behind_it() {
    let stuck = ForecastJob { is_stuck: true, ..job(10, &[]) };
    let jobs = [job(3, &[]), stuck, job(10, &[1]), job(1, &[4]), job(1, &[3]), job(1, &[5])];
    assert_eq!(minutes(&jobs, None), (3, 5));
}

#[test]
fn the_critical_path_is_the_longest_chain_by_time_and_then_by_beads() {
    let jobs = [job(10, &[]), job(1, &[]), job(1, &[1]), job(1, &[2])];
    assert_eq!(critical_path(&jobs), [0]);
    let jobs = [job(3, &[]), job(1, &[]), job(1, &[1]), job(1, &[2])];
    assert_eq!(critical_path(&jobs), [1, 2, 3]);
    assert_eq!(critical_path(&[job(1, &[1]), job(1, &[0])]), [] as [usize; 0]);
}

#[test]
fn a_hundred_thousand_are_gone_through() {
    let jobs: Vec<ForecastJob> = (0..100_000_usize)
        .map(|at| job(1, &at.checked_sub(100).map_or(Vec::new(), |before| vec![before])))
        .collect();
    assert_eq!(minutes(&jobs, Some(50)), (2_000, 0));
    assert_eq!(critical_path(&jobs).len(), 1_000);
}

/// Jobs of which each may wait for any other, so that there are cycles as well.
fn any_jobs(forwards_only: bool) -> impl Strategy<Value = Vec<ForecastJob>> {
    let one = (
        0_u32..100,
        proptest::collection::vec(any::<proptest::sample::Index>(), 0..3),
        proptest::option::of(0_usize..3),
        any::<bool>(),
        0_u64..4,
    );
    proptest::collection::vec(one, 1..30).prop_map(move |all| {
        let count = all.len();
        let made = all.into_iter().enumerate().map(|(at, (takes, waits, rig, running, turn))| {
            let most = if forwards_only { at } else { count };
            let waits = if most == 0 { Vec::new() } else { waits };
            ForecastJob {
                takes: if rig.is_some() { MINUTE * takes } else { Duration::ZERO },
                waits_for: waits.into_iter().map(|wait| wait.index(most)).collect(),
                rig,
                is_running: running && rig.is_some() && at % 7 == 0,
                is_stuck: false,
                begins_in: Duration::ZERO,
                turn,
            }
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn it_is_never_sooner_than_the_longest_chain_or_the_work_of_all_slots(
        jobs in any_jobs(true),
        slots in proptest::option::of(1_u32..5),
    ) {
        let all = forecast(&jobs, &room(slots));
        prop_assert_eq!(all.left_out, 0);
        let path = critical_path(&jobs);
        let chain: Duration = path.iter().map(|at| jobs[*at].takes).sum();
        prop_assert!(all.remaining >= chain, "{:?} {:?}", all, path);
        let work: Duration = jobs.iter().map(|job| job.takes).sum();
        prop_assert!(all.remaining <= work, "a slot is always in use");
        if let Some(slots) = slots {
            let running = jobs.iter().filter(|job| job.is_running).count();
            let hands = u32::try_from(running).unwrap().max(slots);
            prop_assert!(all.remaining >= work / hands);
        } else {
            prop_assert_eq!(all.remaining, chain);
        }
    }

    #[test]
    fn a_path_goes_from_one_to_the_next_and_cycles_end(jobs in any_jobs(false), slots in 0_u32..4) {
        let all = forecast(&jobs, &room(Some(slots)));
        let work: Duration = jobs.iter().map(|job| job.takes).sum();
        prop_assert!(all.remaining <= work);
        let unlimited = forecast(&jobs, &room(None));
        prop_assert!(unlimited.left_out <= all.left_out);
        let path = critical_path(&jobs);
        let mut seen = path.clone();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), path.len(), "no job is in it twice");
        prop_assert!(path.iter().all(|at| jobs[*at].rig.is_some()));
    }
}
