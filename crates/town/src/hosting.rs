//! The hosting service of a rig.

use gt_core::Rig;
use gt_core::hosting::HostedRepository;
use gt_executors::hosting::{HostingProvider, provider_for_host};

use crate::Town;

/// Where a town has files about hosting services of its own, below its directory.
pub const HOSTING_FILES: &str = ".gt/hosting";

/// Why a rig has no hosting service that can be asked, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoHosting(pub String);

/// The service of a rig and its repository there: by the setting `rig.<rig>.hosting`, or by the address of its origin.
pub fn hosting_of(
    town: &Town,
    rig: &Rig,
    setting: &str,
) -> Result<(HostedRepository, HostingProvider), NoHosting> {
    let slug = &rig.slug;
    let hosted = HostedRepository::of_origin(&rig.repo).map_err(|why| {
        NoHosting(format!("{why}; gt config set rig.{slug}.merge mr lands through the merge queue"))
    })?;
    let known = provider_for_host(&hosted.host);
    let name = Some(setting).filter(|name| !name.is_empty()).or(known).ok_or_else(|| {
        NoHosting(format!(
            "no hosting service is known for {}; gt config set rig.{slug}.hosting gh or glab says which it is",
            hosted.host
        ))
    })?;
    Ok((hosted, provider_named(town, rig, name)?))
}

/// The hosting service of this name: a built-in one, or one that a file of the town describes.
pub(crate) fn provider_named(
    town: &Town,
    rig: &Rig,
    name: &str,
) -> Result<HostingProvider, NoHosting> {
    match HostingProvider::load(name, &town.root().join(HOSTING_FILES)) {
        Ok(Some(provider)) => Ok(provider),
        Ok(None) => Err(NoHosting(format!(
            "there is no file {HOSTING_FILES}/{name}.toml; gt config set rig.{}.hosting gh or glab takes a built-in one",
            rig.slug
        ))),
        Err(invalid) => Err(NoHosting(invalid.to_string())),
    }
}
