//! Programs that tests write and then run.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be run at once.
///
/// A file that is open for writing in any process cannot be run. A test that wrote the file itself would share the open file
/// with every process that another test starts in that moment, so another process writes it.
#[track_caller]
pub fn write_program(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = shell.spawn().expect("start a shell");
    let mut input = writer.stdin.take().expect("it has an input");
    input.write_all(text.as_ref()).expect("pass the program on");
    drop(input);
    assert!(writer.wait().expect("wait for the shell").success(), "write {}", path.display());
}
