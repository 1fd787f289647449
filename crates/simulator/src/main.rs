//! Runs seeds and says what they found.

use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut failed = false;
    let mut args = std::env::args().skip(1);
    let n: u64 = args.next().and_then(|a| a.parse().ok()).unwrap_or(100);
    let from: u64 = args.next().and_then(|a| a.parse().ok()).unwrap_or(1);
    let mut steps = 0;
    let mut bad = 0;
    for seed in from..from + n {
        let store = gt_store::Store::in_memory().expect("memory");
        let outcome = gt_simulator::simulate(seed, store, None);
        steps += outcome.steps;
        if let Some(v) = outcome.violation {
            failed = true;
            bad += 1;
            if bad <= 3 { let _ = write!(io::stdout(), "{v}"); } else { let _ = writeln!(io::stdout(), "seed {}: {}: {}", v.seed, v.invariant.name(), v.found); }
        }
    }
    let _ = writeln!(io::stdout(), "{n} seeds, {steps} steps, {bad} violations");
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
