//! Seeded pseudo-random order: the same seed gives the same order on every platform and in every
//! release.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, 2014): 64 bits of state, an addition and a
//! mixing function. It is tiny, its output is fixed by its published definition, and it is good
//! enough to shuffle tools; it is not for cryptography.

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator with a seed; any number is valid.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, each equally likely; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Values above the largest multiple of the bound would favour small remainders: draw again.
        let usable = u64::MAX - (u64::MAX % bound + 1) % bound;
        loop {
            let drawn = self.next_u64();
            if drawn <= usable {
                return drawn % bound;
            }
        }
    }

    /// Shuffles the items (Fisher and Yates, from the end).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The seed of one run of a test without `seed:`: FNV-1a over the bytes of its name, mixed with the
/// number of the run.
#[must_use]
pub fn seed_of(test: &str, run: u64) -> u64 {
    let hash = test.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    combine(hash, run)
}

/// The seed of one run, derived from the seed in the suite.
#[must_use]
pub fn combine(seed: u64, run: u64) -> u64 {
    mix(seed ^ mix(run.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_published_sequence() {
        // From the reference implementation, seed 1234567.
        let mut generator = SplitMix64::new(1_234_567);
        assert_eq!(
            std::array::from_fn::<u64, 5, _>(|_| generator.next_u64()),
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn orders_never_change_between_releases() {
        let mut items: Vec<u32> = (0..10).collect();
        SplitMix64::new(7).shuffle(&mut items);
        assert_eq!(items, [8, 1, 5, 9, 0, 4, 3, 2, 6, 7]);
        assert_eq!(seed_of("", 0), 12_591_593_934_349_417_548);
    }

    #[test]
    fn every_order_occurs() {
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..6000 {
            let mut items = [0, 1, 2];
            SplitMix64::new(seed).shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| (850..1150).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn runs_and_tests_have_their_own_seeds() {
        assert_ne!(seed_of("a", 1), seed_of("a", 2));
        assert_ne!(seed_of("a", 1), seed_of("b", 1));
        assert_ne!(combine(7, 1), combine(7, 2));
    }

    proptest! {
        #[test]
        fn a_bound_holds(seed: u64, bound in 1_u64..) {
            prop_assert!(SplitMix64::new(seed).below(bound) < bound);
        }

        #[test]
        fn shuffling_keeps_the_items(seed: u64, mut items in prop::collection::vec(0_u8..9, 0..20)) {
            let mut shuffled = items.clone();
            SplitMix64::new(seed).shuffle(&mut shuffled);
            shuffled.sort_unstable();
            items.sort_unstable();
            prop_assert_eq!(shuffled, items);
        }
    }
}
