//! Addresses and networks of addresses, as people list them.

use std::fmt;
use std::net::IpAddr;

use crate::Invalid;

/// A list of addresses and networks, such as `10.0.0.7, 192.168.0.0/16, fd00::/8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<(IpAddr, u8)>);

impl Networks {
    /// Reads addresses and networks that are separated by commas or blanks.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let entries = text.split([',', ' ']).filter(|entry| !entry.is_empty());
        entries.map(network).collect::<Result<Vec<_>, _>>().map(Self)
    }

    /// Whether this address is one of these, or in one of these networks.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|(network, bits)| {
            network.is_ipv4() == address.is_ipv4()
                && shared_bits(*network, address) >= u32::from(*bits)
        })
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (address, bits)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{address}")?;
            if *bits != width(*address) {
                write!(f, "/{bits}")?;
            }
        }
        Ok(())
    }
}

fn network(entry: &str) -> Result<(IpAddr, u8), Invalid> {
    let wrong = || {
        let shown: String = entry.chars().take(60).collect();
        Invalid(format!(
            "\"{}\" is not an address or a network; write 10.0.0.7 or 192.168.0.0/16",
            shown.escape_debug()
        ))
    };
    let (address, bits) = match entry.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
        None => (entry, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let bits = bits.unwrap_or_else(|| width(address));
    if bits > width(address) { Err(wrong()) } else { Ok((address, bits)) }
}

/// How many bits an address of this kind has.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// How many bits two addresses of the same kind begin with in common.
fn shared_bits(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn networks_contain_their_addresses_and_no_others() {
        let networks = Networks::parse("10.0.0.7, 192.168.0.0/16 fd00::/8").unwrap();
        let contain = |text: &str| networks.contain(text.parse().unwrap());
        for inside in ["10.0.0.7", "192.168.255.1", "::ffff:192.168.0.1", "fd12::1"] {
            assert!(contain(inside), "{inside}");
        }
        for outside in ["10.0.0.8", "192.169.0.1", "fe80::1", "::1"] {
            assert!(!contain(outside), "{outside}");
        }
        assert!(Networks::parse("0.0.0.0/0").unwrap().contain("8.8.8.8".parse().unwrap()));
        assert!(!Networks::default().contain("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn malformed_networks_are_refused() {
        for wrong in ["proxy.example", "10.0.0.0/33", "::/129", "10.0.0", "10.0.0.0/", "/8"] {
            assert!(Networks::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn printed_networks_read_back_as_the_same(text in "[0-9a-f:., /]{0,60}") {
            if let Ok(networks) = Networks::parse(&text) {
                prop_assert_eq!(Networks::parse(&networks.to_string()), Ok(networks));
            }
        }
    }
}
