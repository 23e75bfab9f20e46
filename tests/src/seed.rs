//! Randomness that can be repeated.

use std::env;

use rand::SeedableRng;
use rand::rngs::StdRng;
use uuid::{Builder, Uuid};

/// The seed of a test's randomness: `ALLOCD_TEST_SEED`, or the test's own default. Printed,
/// so that a failure tells what to repeat (the interleaving of threads is not repeated).
pub fn seed(default: u64) -> u64 {
    let seed = match env::var("ALLOCD_TEST_SEED") {
        Ok(text) => text.parse().expect("ALLOCD_TEST_SEED is a number"),
        Err(_) => default,
    };
    println!("ALLOCD_TEST_SEED={seed}");
    seed
}

/// The stream of random numbers of one part (a thread, a file) of a test.
pub fn stream(seed: u64, part: u64) -> StdRng {
    StdRng::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(part))
}

/// A random UUID from a repeatable stream.
pub fn uuid(random: &mut impl rand::Rng) -> Uuid {
    Builder::from_random_bytes(random.random()).into_uuid()
}
