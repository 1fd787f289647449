//! The program of a rig around its agents, setup commands and checks (`worker.wrap`, `rig.<rig>.wrap`).

use std::collections::BTreeSet;
use std::path::Path;

use gt_core::Rig;
use gt_core::command_wrap::CommandWrap;
use gt_core::settings::Layers;

use gt_town::tree_paths::Trees;
use gt_town::{OperationError, Result, Town};

/// The program around the commands of a rig, if it has one.
pub(crate) fn wrap_of(layers: &Layers, rig: &Rig) -> Result<Option<CommandWrap>> {
    Ok(CommandWrap::of_rig(&layers.rig_wrap(&rig.slug)?, &layers.worker_wrap()?)?)
}

/// A command that may get a program around it.
pub(crate) struct WrappedCommand<'a> {
    pub(crate) rig: &'a Rig,
    /// The town and the directory of the command.
    pub(crate) place: (&'a Town, &'a Path),
    /// The run; empty if it belongs to none.
    pub(crate) run: &'a str,
    /// The variables that it is given.
    pub(crate) environment: &'a [(String, String)],
}

impl WrappedCommand<'_> {
    /// The words of the command, with the program around them.
    pub(crate) fn argv(
        &self,
        wrap: Option<&CommandWrap>,
        argv: Vec<String>,
    ) -> Result<Vec<String>> {
        let Some(wrap) = wrap else { return Ok(argv) };
        let (town, tree) = self.place;
        let directory = town.root().join(&self.rig.path);
        let repository = Trees::of(town, self.rig)
            .map_or(directory, |trees| trees.repository().path().to_owned());
        let values = [
            ("rig", self.rig.slug.to_string()),
            ("run", self.run.to_owned()),
            ("tree", tree.display().to_string()),
            ("repository", repository.display().to_string()),
            ("town", town.root().display().to_string()),
        ];
        let values: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let variables: BTreeSet<&str> =
            self.environment.iter().map(|(name, _)| name.as_str()).collect();
        let variables: Vec<&str> = variables.into_iter().collect();
        wrap.around(&argv, &values, &variables).map_err(|error| {
            OperationError::rejected(format!(
                "worker.wrap: {error}; set another for this rig: gt config set rig.{}.wrap <command>",
                self.rig.slug
            ))
        })
    }
}
