//! The ports of a tree: servers that workers and checks start side by side must not meet at one port.

/// The variables with the first port of a tree, and with the number of its ports.
const BASE_VARIABLE: &str = "GT_PORT_BASE";
const COUNT_VARIABLE: &str = "GT_PORT_COUNT";

/// The largest port.
const PORT_MAX: u32 = 65_535;

/// Ports in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    base: u32,
    count: u32,
}

impl PortRange {
    /// The range of the tree with this number, if ranges of `count` ports begin at `base`; nothing if there are no ports left, or
    /// ranges are empty.
    pub fn of_tree(base: u32, count: u32, number: u32) -> Option<Self> {
        let first = number.checked_mul(count)?.checked_add(base)?;
        let last = first.checked_add(count)?.checked_sub(1)?;
        (count > 0 && first > 0 && last <= PORT_MAX).then_some(Self { base: first, count })
    }

    /// The variables that tell it to a program.
    pub fn variables(self) -> [(String, String); 2] {
        [(BASE_VARIABLE, self.base), (COUNT_VARIABLE, self.count)]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
    }
}

/// The tree of a polecat, as the owner of a range.
pub fn polecat_place(name: &str) -> String {
    format!("polecats/{name}")
}

/// A tree for checks, as the owner of a range.
pub fn check_place(host: &str, number: u32) -> String {
    format!("{host}/checks/{number}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_end_with_the_last_port() {
        let variables = PortRange::of_tree(20_000, 10, 3).unwrap().variables();
        assert_eq!(
            variables.map(|(name, value)| format!("{name}={value}")),
            ["GT_PORT_BASE=20030", "GT_PORT_COUNT=10"]
        );
        assert!(PortRange::of_tree(65_526, 10, 0).is_some());
        assert_eq!(PortRange::of_tree(65_526, 10, 1), None);
        assert_eq!(PortRange::of_tree(20_000, 0, 0), None);
        assert_eq!(PortRange::of_tree(1, u32::MAX, u32::MAX), None);
    }

    proptest! {
        #[test]
        fn two_trees_have_no_port_in_common(base in 1_u32..65_000, count in 1_u32..500, one in 0_u32..500, other in 0_u32..500) {
            prop_assume!(one != other);
            let (one, other) = (PortRange::of_tree(base, count, one), PortRange::of_tree(base, count, other));
            if let (Some(one), Some(other)) = (one, other) {
                prop_assert!(one.base + count <= other.base || other.base + count <= one.base);
            }
        }
    }
}
