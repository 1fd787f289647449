//! Every target under libFuzzer; `GT_FUZZ_TARGET` names the one that is meant. One program for all of
//! them, because each would be the whole of gt, instrumented and linked anew. `scripts/fuzz` starts it.

#![no_main]

use std::sync::LazyLock;

use gt_fuzzing::{TARGETS, FuzzTarget};

static TARGET: LazyLock<&FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var_os("GT_FUZZ_TARGET").unwrap_or_default();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    gt_fuzzing::find(&name.to_string_lossy())
        .unwrap_or_else(|| panic!("GT_FUZZ_TARGET={name:?}; it is one of {}", names.join(", ")))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.run)(input));
