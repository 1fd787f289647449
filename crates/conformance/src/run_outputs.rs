//! The end of what a run has printed.

use super::EngineUnderTest;
use super::kit::{CheckedStore, at};
use super::runs::begin;
use gt_store::RunOutputTail;

pub(super) fn the_end_of_an_output_is_kept_until_it_is_old(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gr-a"]);
    let run = begin(&town, "gr-a", |_| {}).id;
    let kept = || town.read(|reader| reader.run_output(&run));
    assert_eq!(kept(), None);
    for tail in [vec![0, 255, 10, 0], Vec::new()] {
        let output = RunOutputTail { bytes: 70_000, tail };
        town.write(|writer| writer.keep_run_output(&run, &output));
        assert_eq!(kept(), Some(output));
    }
    assert_eq!(town.write(|writer| writer.forget_run_outputs(at(0))), 0);
    assert_eq!(town.write(|writer| writer.forget_run_outputs(at(i64::from(u32::MAX)))), 1);
    assert_eq!(kept(), None);
}
