//! `packaging/install.sh`, with a directory in the place of a release page.

use std::fs;
use std::path::Path;

use gt_testkit::{FinishedProgram, Sandbox};

use crate::support::{assert_says, files_in, nowhere};

const NAME: &str = "gt-1.0.0-any";

/// A release whose program is a copy of `sleep`, and a line of text as its manual.
fn release(place: &Sandbox) {
    let files = place.cwd().join("release");
    fs::create_dir_all(files.join(NAME).join("bin")).unwrap();
    fs::create_dir_all(files.join(NAME).join("share")).unwrap();
    let sleep = place.command("sh").args(["-c", "command -v sleep"]).run().ok().line().to_owned();
    fs::copy(sleep, files.join(NAME).join("bin/gt")).unwrap();
    fs::write(files.join(NAME).join("share/gt.1"), "manual\n").unwrap();
    let pack = format!(
        "cd release && ln -s gt {NAME}/bin/bd && tar czf {NAME}.tar.gz {NAME} && sha256sum {NAME}.tar.gz >SHA256SUMS"
    );
    place.command("sh").args(["-c", &pack]).run().ok();
}

fn install(place: &Sandbox) -> FinishedProgram {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/install.sh");
    let script = script.display().to_string();
    let from = format!("file://{}", place.cwd().join("release").display());
    let command = place.command("sh").args([script.as_str(), "--prefix", "installed here"]);
    command
        .env("GT_INSTALL_FROM", from)
        .env("GT_INSTALL_VERSION", "1.0.0")
        .env("GT_INSTALL_TARGET", "any")
        .run()
}

#[test]
fn an_update_replaces_a_program_that_runs() {
    let place = nowhere();
    release(&place);
    install(&place).ok();
    let program = place.cwd().join("installed here/bin/gt");
    let running = place.command(&program).arg("600").start();

    let updated = install(&place);
    drop(running);

    assert_says(&updated.ok().stdout, &["Installed gt 1.0.0 and bd"]);
    assert_eq!(files_in(program.parent().unwrap()), ["bd", "gt"]);
    assert_eq!(fs::read_link(program.with_file_name("bd")).unwrap(), Path::new("gt"));
}

#[test]
fn a_damaged_archive_is_not_installed() {
    let place = nowhere();
    release(&place);
    let archive = place.cwd().join(format!("release/{NAME}.tar.gz"));
    fs::write(&archive, "something else").unwrap();
    let refused = install(&place).fails(1);
    assert_says(&refused.stderr, &["is damaged: its checksum is another"]);
    assert!(!place.cwd().join("installed here").exists());
}
