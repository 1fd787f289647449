//! Makes the library behind [`Clock`](src/clock.rs) with the compiler that Rust links with.

#![expect(clippy::disallowed_methods, reason = "a build script cannot use gt-executors yet")]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/clock.c");
    let directory = env::var_os("OUT_DIR").expect("cargo says where to");
    let library = Path::new(&directory).join("clock.so");
    let compile = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "src/clock.c", "-o"];
    let made = Command::new("cc").args(compile).arg(&library).status();
    assert!(made.is_ok_and(|status| status.success()), "cc cannot make {}", library.display());
}
