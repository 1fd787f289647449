//! The ports of a tree, for the programs in it.

use gt_core::Rig;
use gt_core::port_range::{PortRange, check_place, polecat_place};
use gt_core::settings::Layers;

use gt_town::hosts::host_of;
use gt_town::settings::layers_in;
use gt_town::{Result, Town};

/// The variables that name the ports of the tree of a polecat; none if there are no ports left.
pub(crate) fn ports_of_polecat(
    town: &Town,
    rig: &Rig,
    name: &str,
) -> Result<Vec<(String, String)>> {
    ports_of(town, rig, &polecat_place(name))
}

/// The variables that name the ports of a tree for checks on this host.
pub(crate) fn ports_of_checks(
    town: &Town,
    rig: &Rig,
    number: u32,
) -> Result<Vec<(String, String)>> {
    let place = check_place(&host_of(town)?, number);
    if town.read(|reader| Ok(reader.port_range(&rig.slug, &place)?))?.is_none() {
        town.write(|writer| Ok(writer.take_port_range(&rig.slug, &place)?))?;
    }
    ports_of(town, rig, &place)
}

fn ports_of(town: &Town, rig: &Rig, place: &str) -> Result<Vec<(String, String)>> {
    town.read(|reader| {
        let Some(number) = reader.port_range(&rig.slug, place)? else { return Ok(Vec::new()) };
        let range = range(&layers_in(town.root(), reader)?, number)?;
        Ok(range.into_iter().flat_map(PortRange::variables).collect())
    })
}

fn range(layers: &Layers, number: u32) -> Result<Option<PortRange>> {
    let (base, count) = (layers.ports_base()?, layers.ports_count()?);
    let (base, count) = (u32::try_from(base).unwrap_or(0), u32::try_from(count).unwrap_or(0));
    Ok(PortRange::of_tree(base, count, number))
}
