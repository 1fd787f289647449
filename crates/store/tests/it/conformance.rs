//! Every case of the suite as a test of its own, in memory, on files and on a PostgreSQL server.

use std::collections::HashSet;

use gt_conformance::CASES;

macro_rules! cases {
    ($($group:ident { $($case:ident,)* })*) => {
        $(mod $group {
            $(#[test]
            fn $case() {
                let name = concat!(stringify!($group), "::", stringify!($case));
                gt_conformance::run(name, &super::Subject::default());
            })*
        })*
    };
}

macro_rules! subjects {
    ($($place:ident $subject:ident $engine:ident,)*) => {
        $(mod $place {
            use crate::subjects::$subject as Subject;

            #[test]
            fn the_engine_is_the_one_in_the_list() {
                use gt_conformance::{Engine, EngineUnderTest as _};
                assert_eq!(Subject::default().engine(), Engine::$engine);
            }

            gt_conformance::for_each_conformance_case!(cases);
        })*
    };
}

gt_conformance::for_each_conformance_subject!(subjects);

#[test]
fn every_case_has_a_name_of_its_own() {
    let names: HashSet<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len());
    assert!(CASES.len() > 150, "the list of cases has shrunk");
}
