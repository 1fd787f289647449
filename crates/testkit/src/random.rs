//! Chance that can be repeated.

/// A stream of numbers that is the same for the same seed on every machine.
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A number below `limit`; 0 if there is none.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.0.u64(..limit) }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.u64(low..=high)
    }

    /// Yes, once in so many times.
    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// One of these; nothing of nothing.
    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> Option<&'t T> {
        self.0.choice(things)
    }

    /// One of these, each as often as its weight says.
    pub fn weighted<T>(&mut self, things: Vec<(u64, T)>) -> Option<T> {
        let total = things.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for (weight, thing) in things {
            if at < weight {
                return Some(thing);
            }
            at -= weight;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_gives_others() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| random.between(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7).iter().all(|number| (3..=9).contains(number)));
    }

    #[test]
    fn a_choice_without_weight_is_never_chosen() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            assert_eq!(random.weighted(vec![(0, 'a'), (3, 'b'), (0, 'c')]), Some('b'));
        }
        assert_eq!(random.weighted::<char>(Vec::new()), None);
        assert_eq!(random.pick::<char>(&[]), None);
    }
}
