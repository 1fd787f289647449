//! Calls of tmux as a person makes them.

use std::process::{Command, Output};

/// Calls tmux with the server of this socket.
pub fn call_tmux(socket: &str, words: &[&str]) -> Output {
    Command::new("tmux").args(["-L", socket]).args(words).output().expect("tmux runs")
}
