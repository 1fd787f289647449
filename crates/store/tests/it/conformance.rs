//! Every case of the suite as a test of its own, in memory, on files and on a PostgreSQL server.

use std::collections::HashSet;

use gt_store::conformance::CASES;

macro_rules! conformance_tests {
    ($($group:ident { $($case:ident,)* })*) => {
        conformance_tests! { @on in_memory crate::subjects::InMemory; $($group { $($case,)* })* }
        conformance_tests! { @on on_files crate::subjects::OnFiles::default(); $($group { $($case,)* })* }
        conformance_tests! { @on on_server crate::subjects::OnServer; $($group { $($case,)* })* }
    };
    (@on $name:ident $subject:expr; $($group:ident { $($case:ident,)* })*) => {
        mod $name {
            $(mod $group {
                $(#[test]
                fn $case() {
                    let name = concat!(stringify!($group), "::", stringify!($case));
                    gt_store::conformance::run(name, &$subject);
                })*
            })*
        }
    };
}

gt_store::for_each_conformance_case!(conformance_tests);

#[test]
fn every_case_has_a_name_of_its_own() {
    let names: HashSet<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len());
    assert!(CASES.len() > 150, "the list of cases has shrunk");
}
