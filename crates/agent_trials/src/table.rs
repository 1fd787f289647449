//! The table of results.

use std::fmt::Write as _;

use crate::agents::PinnedAgent;
use crate::cases::TrialCase;

/// The result of a case with an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed(String),
    /// The agent cannot do this, whatever the product does.
    NotSupported,
    /// The agent is not installed, or the case was not asked for.
    Skipped,
}

impl Verdict {
    /// The word for it.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::NotSupported => "not supported",
            Self::Skipped => "skipped",
        }
    }
}

/// The results of one agent, one for each case.
#[derive(Debug)]
pub(crate) struct AgentVerdicts {
    pub(crate) agent: PinnedAgent,
    /// Why it was not tried at all.
    pub(crate) skipped: Option<String>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// The page that shows all results.
pub(crate) fn page(cases: &[TrialCase], results: &[AgentVerdicts]) -> String {
    let mut page = String::from(
        "# Real agents\n\n\
         Each agent was installed in the version below and tried in a town of its own, with its built-in runtime and a\n\
         fake model API on the same machine. `scripts/agents` does that and writes this page; do not edit it.\n\n\
         The model follows a script, so this shows how the programs and `gt` work together, not how well they work.\n\n",
    );
    let titles: Vec<&str> = cases.iter().map(|case| case.title).collect();
    let _ = writeln!(page, "| agent | version | {} |", titles.join(" | "));
    let _ = writeln!(page, "|---|---|{}", "---|".repeat(cases.len()));
    for result in results {
        let words: Vec<&str> = result.verdicts.iter().map(Verdict::as_str).collect();
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            result.agent.name,
            result.agent.version,
            words.join(" | ")
        );
    }
    let mut notes = String::new();
    for result in results {
        if let Some(why) = &result.skipped {
            let _ = writeln!(notes, "- {}: skipped: {why}", result.agent.name);
        }
        for (case, verdict) in cases.iter().zip(&result.verdicts) {
            if let Verdict::Failed(why) = verdict {
                let _ = writeln!(notes, "- {}, {}: {why}", result.agent.name, case.title);
            }
        }
    }
    if !notes.is_empty() {
        let _ = write!(page, "\n## What failed or was skipped\n\n{notes}");
    }
    page.push_str(
        "\n*Not supported*: the agent has no tool that runs commands, so it cannot call `gt` while it works; or, for *over its\n\
         budget*, it does not tell its usage while it works. `budget.run_time` ends such a run. *Works with MCP tools* needs a\n\
         preset that passes the tools of `gt mcp` on; others are configured in the home of their user, which `gt` does not change.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::AgentAbility;

    #[test]
    fn failures_and_skipped_agents_are_named() {
        let case = TrialCase {
            name: "lands",
            title: "lands a bead",
            needs: AgentAbility::Work,
            run: |_| Ok(()),
        };
        let agent = |name| PinnedAgent { name, package: "p", version: "1.0", program: "p" };
        let results = [
            AgentVerdicts { agent: agent("one"), skipped: None, verdicts: vec![Verdict::Passed] },
            AgentVerdicts {
                agent: agent("two"),
                skipped: None,
                verdicts: vec![Verdict::Failed("it ended".to_owned())],
            },
            AgentVerdicts {
                agent: agent("three"),
                skipped: Some("not installed".to_owned()),
                verdicts: vec![Verdict::Skipped],
            },
        ];
        let page = page(&[case], &results);
        for line in [
            "| one | 1.0 | passed |",
            "| two | 1.0 | failed |",
            "| three | 1.0 | skipped |",
            "- two, lands a bead: it ended",
            "- three: skipped: not installed",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }
}
