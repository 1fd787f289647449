//! The flags that `gt sling` and `gt queue` share.

use clap::Args;
use gt_core::schedule::Merge;
use gt_scheduling::schedule::{SlingOptions, read_list};
use gt_town::rigs::branch_name;

use crate::error::CliError;
use crate::values::{binding, source_name, text_of};

/// How slung work is to be done.
#[derive(Debug, Args)]
pub(in crate::gt) struct SlingFlags {
    /// Apply the formula to this bead, to those in @FILE, or to those on standard input (-); can be repeated
    #[arg(long, value_name = "BEAD|@FILE|-", allow_hyphen_values = true)]
    on: Vec<String>,
    /// Follow this formula instead of mol-polecat-work
    #[arg(long)]
    formula: Option<String>,
    /// The value of a variable of the formula (can be repeated)
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = binding)]
    variables: Vec<(String, String)>,
    /// Instructions for the worker, in plain words
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    args: Option<String>,
    /// Take the instructions from standard input
    #[arg(long, conflicts_with = "args")]
    stdin: bool,
    /// How the work reaches its branch
    #[arg(long, value_name = "direct|mr|pr|local", value_parser = Merge::parse)]
    merge: Option<Merge>,
    /// Begin from this branch
    #[arg(long, value_name = "BRANCH", value_parser = branch_name)]
    base_branch: Option<String>,
    /// Start it on this host of the town alone
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Keep the branch, and do not merge it
    #[arg(long, conflicts_with = "merge")]
    no_merge: bool,
    /// Let a person approve the work before the merge queue lands it
    #[arg(long, conflicts_with = "merge")]
    review_only: bool,
    /// Let a person approve the work before it lands
    #[arg(long)]
    review: bool,
    /// Charge this account
    #[arg(long, value_name = "HANDLE")]
    account: Option<String>,
    /// Work with this runtime instead of the rig's own
    #[arg(long, value_name = "RUNTIME")]
    agent: Option<String>,
    /// A fresh session for every step
    #[arg(long)]
    ralph: bool,
    /// Hand over the bead alone, without a formula
    #[arg(long, conflicts_with_all = ["formula", "on", "variables"])]
    hook_raw_bead: bool,
    /// Look after the convoy yourself: it does not land by itself
    #[arg(long, conflicts_with = "no_convoy")]
    owned: bool,
    /// Make no convoy for it
    #[arg(long)]
    no_convoy: bool,
    /// Say nothing about a daemon that does not run
    #[arg(long)]
    pub(super) no_boot: bool,
    /// Past a prefix of another rig, an assignee, or a hook without a run
    #[arg(long)]
    force: bool,
    /// Start any number at once without being asked
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Leave out names that are neither a bead nor a target, instead of stopping before anything is scheduled
    #[arg(long)]
    pub(super) skip_unknown: bool,
    /// Say what would happen, and change nothing
    #[arg(short = 'n', long)]
    pub(super) dry_run: bool,
    /// Accepted: several beads are a batch anyway
    #[arg(long, hide = true)]
    batch: bool,
    /// Try a run that fails again, so many times
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
}

impl SlingFlags {
    /// Whether no bead stands behind --on.
    pub(in crate::gt) fn names_nothing(&self) -> bool {
        self.on.is_empty()
    }

    /// Whether any flag is given.
    pub(in crate::gt) fn any(&self) -> bool {
        let said = [
            self.stdin,
            self.no_merge,
            self.review_only,
            self.review,
            self.ralph,
            self.hook_raw_bead,
            self.owned,
            self.no_convoy,
            self.no_boot,
            self.force,
            self.yes,
            self.skip_unknown,
            self.dry_run,
            self.batch,
            self.retries > 0,
            self.merge.is_some(),
            !self.on.is_empty(),
            !self.variables.is_empty(),
        ];
        let texts =
            [&self.formula, &self.args, &self.base_branch, &self.account, &self.agent, &self.host];
        said.contains(&true) || texts.into_iter().any(Option::is_some)
    }

    /// The beads that the formula is for.
    pub(super) fn on(&self) -> Result<Vec<String>, CliError> {
        let from_input = usize::from(self.stdin) + self.on.iter().filter(|on| *on == "-").count();
        if from_input > 1 {
            return Err(CliError::request(
                "standard input can be read once: as --stdin or as one --on -",
            ));
        }
        let mut beads = Vec::new();
        for on in &self.on {
            let path = if on == "-" { Some("-") } else { on.strip_prefix('@') };
            let Some(path) = path else {
                beads.push(on.clone());
                continue;
            };
            let list = read_list(&text_of(path)?);
            if list.is_empty() {
                let source = source_name(path);
                return Err(CliError::request(format!("{source} names no bead")));
            }
            beads.extend(list);
        }
        Ok(beads)
    }

    /// How it is to be done.
    pub(super) fn flags(&self) -> Result<SlingOptions, CliError> {
        let args = match (&self.args, self.stdin) {
            (Some(args), _) => Some(args.clone()),
            (None, true) => Some(text_of("-")?.trim_end().to_owned()),
            (None, false) => None,
        };
        Ok(SlingOptions {
            formula: self.formula.clone(),
            vars: self.variables.clone(),
            args: args.filter(|args| !args.is_empty()),
            merge: self.merge,
            base_branch: self.base_branch.clone(),
            host: self.host.clone(),
            no_merge: self.no_merge,
            review_only: self.review_only,
            review: self.review,
            account: self.account.clone(),
            runtime: self.agent.clone(),
            ralph: self.ralph,
            hook_raw_bead: self.hook_raw_bead,
            owned: self.owned,
            no_convoy: self.no_convoy,
            force: self.force,
            retries: self.retries,
        })
    }
}
