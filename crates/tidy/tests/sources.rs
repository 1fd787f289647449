//! The rules for the text of our files.

use gt_tidy::assert_none;
use gt_tidy::policy::FILE_LINES_MAX;
use gt_tidy::scan;
use gt_tidy::workspace::{SourceFile, files};

/// Where SQL may stand: the store, the baselines it is measured against, the test kit, which administers
/// servers, and tests, which look behind the store's back on purpose.
fn may_have_sql(file: &SourceFile) -> bool {
    file.path.starts_with("crates/store/")
        || file.path.starts_with("crates/conformance/")
        || file.path.starts_with("crates/benchmarks/")
        || file.path.starts_with("crates/testkit/")
        || file.is_test()
}

/// `path:line` of everything that `search` finds in the files that `wanted` accepts.
fn search(
    wanted: impl Fn(&SourceFile) -> bool,
    search: impl Fn(&str) -> Vec<usize>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files().into_iter().filter(wanted) {
        for line in search(&file.text) {
            findings.push(format!("{}:{line}", file.path));
        }
    }
    findings
}

#[test]
fn sql_lives_in_the_store_alone() {
    let findings = search(|file| file.is_rust() && !may_have_sql(file), scan::sql);
    assert_none("give the store a verb for it, see crates/store:", &findings);
}

#[test]
fn nothing_is_left_behind() {
    let findings = search(|file| !file.is_data() && !file.is_foreign(), scan::left_behind);
    assert_none("do it now, or open an issue:", &findings);
    let findings = search(SourceFile::is_rust, scan::left_behind_macros);
    assert_none("unfinished code, or output for debugging:", &findings);
}

#[test]
fn every_test_runs() {
    let findings = search(SourceFile::is_rust, scan::ignored_tests);
    assert_none("a test that does not run says nothing; repair or remove it:", &findings);
}

#[test]
fn no_code_waits_for_a_system_that_no_job_compiles() {
    let findings = search(SourceFile::is_rust, scan::system_conditions);
    assert_none("gt runs on Linux; add a job to .github/workflows/ci.yml first:", &findings);
}

#[test]
fn files_stay_short() {
    let findings: Vec<String> = files()
        .into_iter()
        .filter(|file| !file.is_data() && !file.is_foreign())
        .map(|file| (file.text.lines().count(), file.path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert_none(&format!("split files of more than {FILE_LINES_MAX} lines:"), &findings);
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let findings = search(|_| true, scan::machine_paths);
    assert_none("it does not exist elsewhere; start from a variable or from the root:", &findings);
}
