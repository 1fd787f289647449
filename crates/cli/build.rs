//! Links the debug programs at a fixed address. The tests start them tens of thousands of times, and the loader spent
//! a fifth of each start on adjusting addresses. Programs that are released keep random addresses.

use std::env;

#[expect(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script about its target by variables alone"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    if is("PROFILE", "debug")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
