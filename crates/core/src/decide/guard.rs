//! Whether the machine has room for one more worker.
//!
//! A cap counts workers; these guards measure. Both only ever hold up starts, and never when nothing runs: a
//! machine that is full of other things must not stop the town for good.

use std::time::Duration;

/// A start younger than this has not taken its memory yet, and counts with the usual memory of its runtime.
pub const MEMORY_GROWTH_TIME: Duration = Duration::from_mins(1);

/// The memory of a machine, or of the part of it that is ours, in megabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineMemory {
    /// All of it.
    pub total_mb: u64,
    /// The memory that can still be used without swapping.
    pub available_mb: u64,
}

/// How busy a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLoad {
    /// How many wanted to run on average over the last minute, in hundredths.
    pub hundredths: u64,
    /// The number of processors.
    pub cores: u32,
}

/// The disk of a town, in megabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineDisk {
    /// All of it.
    pub total_mb: u64,
    /// The room that can still be written to.
    pub free_mb: u64,
}

/// The facts about a machine; an unknown fact holds up nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Its memory.
    pub memory: Option<MachineMemory>,
    /// Its load.
    pub load: Option<MachineLoad>,
    /// The file system of the town.
    pub disk: Option<MachineDisk>,
}

/// How much must be left, as settings say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFloor {
    /// So many hundredths of all memory,
    pub percent: u32,
    /// and so many megabytes.
    pub mb: u64,
}

/// The memory guard as it stands at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryGuard {
    /// The available memory, without regard to starts that have not taken theirs yet.
    pub available_mb: u64,
    /// Nothing starts while less than this is available.
    pub minimum_mb: u64,
    /// It held up starts at the last check, so it takes clearly more to let them go on.
    pub was_shut: bool,
    /// The megabytes from which a closed guard opens again.
    reopens_mb: u64,
}

impl MemoryGuard {
    /// The guard over this memory. Both parts of the floor must be kept.
    pub fn new(memory: MachineMemory, floor: MemoryFloor, was_shut: bool) -> Self {
        let part = memory.total_mb.saturating_mul(floor.percent.into()) / 100;
        let minimum_mb = part.max(floor.mb);
        // Half as much again, but never more than a machine with nothing on it could have.
        let above = memory.total_mb.saturating_sub(minimum_mb) / 2;
        let reopens_mb = minimum_mb.saturating_add(above.min(minimum_mb / 2));
        Self { available_mb: memory.available_mb, minimum_mb, was_shut, reopens_mb }
    }

    /// The megabytes that must be available now.
    pub fn wanted_mb(&self) -> u64 {
        if self.was_shut { self.reopens_mb } else { self.minimum_mb }
    }

    /// Whether nothing may start, if so much of the available memory is promised.
    pub fn is_shut(&self, pledged_mb: u64) -> bool {
        self.available_mb.saturating_sub(pledged_mb) < self.wanted_mb()
    }
}

/// The disk guard as it stands at one moment.
///
/// It holds up starts also when nothing runs: a run that cannot write its files only fails, and the store with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskGuard {
    /// The megabytes that are free.
    pub available_mb: u64,
    /// Nothing starts while less than this is free.
    pub minimum_mb: u64,
    /// It held up starts at the last check, so it takes clearly more to let them go on.
    pub was_shut: bool,
    /// The megabytes from which a closed guard opens again. Logs are removed until so much is free.
    pub reopens_mb: u64,
}

impl DiskGuard {
    /// The guard over a disk; nothing if it is switched off with a minimum of 0.
    pub fn new(disk: MachineDisk, minimum_mb: u64, was_shut: bool) -> Option<Self> {
        // A quarter more, but never more than an empty disk could have.
        let above = disk.total_mb.saturating_sub(minimum_mb) / 4;
        let reopens_mb = minimum_mb.saturating_add(above.min(minimum_mb / 4));
        let available_mb = disk.free_mb;
        (minimum_mb > 0).then_some(Self { available_mb, minimum_mb, was_shut, reopens_mb })
    }

    /// The megabytes that must be free now.
    pub fn wanted_mb(&self) -> u64 {
        if self.was_shut { self.reopens_mb } else { self.minimum_mb }
    }

    /// Whether nothing may start.
    pub fn is_shut(&self) -> bool {
        self.available_mb < self.wanted_mb()
    }
}

/// The load guard as it stands at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadGuard {
    /// The load for each core, in hundredths.
    pub per_core: u64,
    /// Nothing starts while it is at least this.
    pub maximum: u64,
    /// It held up starts at the last check, so it takes clearly less to let them go on.
    pub was_shut: bool,
}

impl LoadGuard {
    /// The guard over this load; nothing if it is switched off with a maximum of 0.
    pub fn new(load: MachineLoad, maximum: u64, was_shut: bool) -> Option<Self> {
        let per_core = load.hundredths / u64::from(load.cores.max(1));
        (maximum > 0).then_some(Self { per_core, maximum, was_shut })
    }

    /// The load must be below this now.
    pub fn wanted(&self) -> u64 {
        if self.was_shut { self.maximum - self.maximum / 5 } else { self.maximum }
    }

    /// Whether nothing may start.
    pub fn is_shut(&self) -> bool {
        self.per_core >= self.wanted()
    }
}

/// The memory that a runtime is believed to take, after a run that took `peak_mb` at most: as much as the
/// largest recent run. A larger run is forgotten by an eighth with each run.
pub fn learn_memory(believed_mb: Option<u32>, peak_mb: u32) -> u32 {
    match believed_mb {
        Some(believed) if believed > peak_mb => believed - (believed - peak_mb).div_ceil(8),
        _ => peak_mb,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLOOR: MemoryFloor = MemoryFloor { percent: 5, mb: 256 };

    fn guard(total_mb: u64, available_mb: u64, was_shut: bool) -> MemoryGuard {
        MemoryGuard::new(MachineMemory { total_mb, available_mb }, FLOOR, was_shut)
    }

    #[test]
    fn five_in_a_hundred_and_256_megabytes_must_be_left() {
        // On a large machine the part counts, on a small one the number.
        assert!(guard(64_000, 3_199, false).is_shut(0));
        assert!(!guard(64_000, 3_200, false).is_shut(0));
        assert!(guard(2_000, 255, false).is_shut(0));
        assert!(!guard(2_000, 256, false).is_shut(0));
    }

    #[test]
    fn a_new_start_counts_before_it_has_taken_memory() {
        let guard = guard(64_000, 6_000, false);
        assert!(!guard.is_shut(2_800));
        assert!(guard.is_shut(2_801));
    }

    #[test]
    fn once_shut_it_opens_only_when_there_is_clearly_more() {
        assert!(guard(64_000, 4_799, true).is_shut(0));
        assert!(!guard(64_000, 4_800, true).is_shut(0));
        // Also where the floor is most of the memory.
        let floor = MemoryFloor { percent: 0, mb: 900 };
        let small = |available_mb| {
            MemoryGuard::new(MachineMemory { total_mb: 1_000, available_mb }, floor, true)
                .is_shut(0)
        };
        assert!(small(949) && !small(950));
    }

    #[test]
    fn the_disk_guard_is_shut_below_its_minimum_and_off_at_zero() {
        let shut = |free_mb| {
            let disk = MachineDisk { total_mb: 100_000, free_mb };
            DiskGuard::new(disk, 512, false).unwrap().is_shut()
        };
        assert!(shut(0) && shut(511) && !shut(512));
        assert_eq!(DiskGuard::new(MachineDisk { total_mb: 0, free_mb: 0 }, 0, true), None);
    }

    #[test]
    fn a_shut_disk_guard_opens_only_when_there_is_clearly_more_room() {
        let shut = |total_mb, free_mb| {
            DiskGuard::new(MachineDisk { total_mb, free_mb }, 512, true).unwrap().is_shut()
        };
        assert!(shut(100_000, 639) && !shut(100_000, 640));
        // Also where the minimum is nearly all of the disk, or more than it has.
        assert!(shut(612, 536) && !shut(612, 537));
        assert!(shut(400, 400) && shut(400, 511) && !shut(400, 512));
    }

    #[test]
    fn the_load_guard_is_off_unless_a_number_is_set() {
        let load = MachineLoad { hundredths: 1_000, cores: 4 };
        assert_eq!(LoadGuard::new(load, 0, false), None);
        let shut = |maximum, was_shut| LoadGuard::new(load, maximum, was_shut).unwrap().is_shut();
        assert!(shut(250, false) && !shut(251, false));
        assert!(shut(300, true) && !shut(320, true));
        assert!(
            LoadGuard::new(MachineLoad { hundredths: 300, cores: 0 }, 200, false)
                .unwrap()
                .is_shut()
        );
    }

    #[test]
    fn a_smaller_peak_lowers_the_estimate_slowly_and_a_larger_one_raises_it_at_once() {
        assert_eq!(learn_memory(None, 700), 700);
        assert_eq!(learn_memory(Some(700), 1_400), 1_400);
        assert_eq!(learn_memory(Some(1_400), 600), 1_300);
    }

    proptest! {
        #[test]
        fn it_never_lets_through_with_less_than_the_floor_and_always_reopens(
            total in 0_u64..1 << 40, available in 0_u64..1 << 40, pledged in 0_u64..1 << 40,
            percent in 0_u32..100, mb in 0_u64..1 << 20, was_shut in any::<bool>(),
        ) {
            let floor = MemoryFloor { percent, mb };
            let available = available.min(total);
            let guard =
                |available_mb, was_shut| MemoryGuard::new(MachineMemory { total_mb: total, available_mb }, floor, was_shut);
            let now = guard(available, was_shut);
            if !now.is_shut(pledged) {
                prop_assert!(available.saturating_sub(pledged) >= now.minimum_mb);
                // One that was shut is at least as strict, and less spoken for is never worse.
                prop_assert!(!guard(available, false).is_shut(pledged));
                prop_assert!(!now.is_shut(pledged / 2));
            }
            // With any floor that the machine can reach, an empty machine is above it.
            if now.minimum_mb <= total {
                prop_assert!(!guard(total, true).is_shut(0));
            }
        }

        #[test]
        fn the_disk_guard_does_not_alternate_around_its_minimum(
            total in 0_u64..1 << 40, minimum in 1_u64..1 << 40, steps in prop::collection::vec(0_u64..1 << 40, 0..20),
        ) {
            let guard = |free_mb, was_shut| {
                DiskGuard::new(MachineDisk { total_mb: total, free_mb }, minimum, was_shut).unwrap()
            };
            let mut was_shut = false;
            for free in steps {
                let now = guard(free, was_shut);
                // It changes only across the whole distance between its two levels.
                match (was_shut, now.is_shut()) {
                    (false, true) => prop_assert!(free < minimum),
                    (true, false) => prop_assert!(free >= now.reopens_mb && free >= minimum),
                    _ => {}
                }
                was_shut = now.is_shut();
            }
            prop_assert!(minimum > total || !guard(total, true).is_shut());
        }

        #[test]
        fn the_estimate_converges_to_the_observed_peak(start in any::<u32>(), peak in any::<u32>()) {
            let mut believed = Some(start);
            for _ in 0..400 {
                let next = learn_memory(believed, peak);
                prop_assert!(next >= peak && (next == peak || Some(next) < believed));
                believed = Some(next);
            }
            prop_assert_eq!(believed, Some(peak));
        }
    }
}
