//! How searches for candidates answer: Placement's options `max_allocation_candidates`,
//! `allocation_candidates_generation_strategy` and `randomize_allocation_candidates`, under their names.
//! They shape answers and no decision, so that they are no part of the ledger.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use projector::candidates::{Generation, Strategy};
use serde::Deserialize;

use super::ConfigError;

/// What Placement takes for "no limit".
const UNLIMITED: i64 = -1;

/// From which hosts candidates are generated first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GenerationStrategy {
    /// All candidates of one host before those of the next.
    DepthFirst,
    /// One candidate of each host in turn.
    BreadthFirst,
}

/// The options about searches for candidates.
#[derive(Clone, Debug, Default, Args)]
pub struct CandidatesArgs {
    /// The most candidates that one answer holds, whatever its query says; -1: as many as there are
    /// [default: -1]
    #[arg(
        long,
        value_name = "N",
        env = "ALLOCD_MAX_ALLOCATION_CANDIDATES",
        allow_negative_numbers = true
    )]
    pub max_allocation_candidates: Option<i64>,
    /// Which candidates those are: all of the first hosts, or some of each host in turn. A query's own
    /// limit is spread over hosts in any case [default: depth-first]
    #[arg(long, value_enum, env = "ALLOCD_ALLOCATION_CANDIDATES_GENERATION_STRATEGY")]
    pub allocation_candidates_generation_strategy: Option<GenerationStrategy>,
    /// Draw the order of hosts anew for each answer, so that one that is cut off names others each
    /// time [default: false]
    #[arg(long, value_name = "BOOL", env = "ALLOCD_RANDOMIZE_ALLOCATION_CANDIDATES",
          num_args = 0..=1, default_missing_value = "true",
          value_parser = clap::builder::BoolishValueParser::new())]
    pub randomize_allocation_candidates: Option<bool>,
}

/// How searches for candidates answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CandidatesConfig {
    /// The most candidates of an answer; none: all.
    pub most: Option<NonZeroUsize>,
    /// Which candidates those are.
    pub strategy: Strategy,
    /// Whether the order of hosts is drawn anew for each answer.
    pub randomize: bool,
}

impl CandidatesArgs {
    /// These, and those of the file for what they do not say.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            max_allocation_candidates: self
                .max_allocation_candidates
                .or(file.max_allocation_candidates),
            allocation_candidates_generation_strategy: self
                .allocation_candidates_generation_strategy
                .or(file.allocation_candidates_generation_strategy),
            randomize_allocation_candidates: self
                .randomize_allocation_candidates
                .or(file.randomize_allocation_candidates),
        }
    }

    /// The settings, with defaults for what is not said.
    ///
    /// # Errors
    /// A number of candidates below 1 that is not -1.
    pub fn resolve(self) -> Result<CandidatesConfig, ConfigError> {
        let number = self.max_allocation_candidates.unwrap_or(UNLIMITED);
        let most = usize::try_from(number).ok().and_then(NonZeroUsize::new);
        if most.is_none() && number != UNLIMITED {
            return Err(ConfigError::Value {
                name: "max-allocation-candidates",
                value: number.to_string(),
                reason: "it should be at least 1, or -1 for no limit",
            });
        }
        let strategy = match self.allocation_candidates_generation_strategy {
            Some(GenerationStrategy::BreadthFirst) => Strategy::BreadthFirst,
            Some(GenerationStrategy::DepthFirst) | None => Strategy::DepthFirst,
        };
        let randomize = self.randomize_allocation_candidates.unwrap_or_default();
        Ok(CandidatesConfig { most, strategy, randomize })
    }
}

impl CandidatesConfig {
    /// How one answer's candidates are generated.
    #[must_use]
    pub fn generation(&self) -> Generation {
        Generation {
            most: self.most.map(NonZeroUsize::get),
            strategy: self.strategy,
            seed: self.randomize.then(|| uuid::Uuid::new_v4().as_u64_pair().0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(number: i64) -> Result<CandidatesConfig, ConfigError> {
        let args = CandidatesArgs { max_allocation_candidates: Some(number), ..Default::default() };
        args.resolve()
    }

    #[test]
    fn the_defaults_are_placements() {
        let config = CandidatesArgs::default().resolve().expect("the defaults");
        assert_eq!(config, CandidatesConfig::default());
        assert_eq!((config.most, config.strategy), (None, Strategy::DepthFirst));
        assert_eq!(config.generation(), Generation::default());
    }

    #[test]
    fn a_limit_is_a_number_of_candidates_or_none() {
        assert_eq!(resolved(-1).expect("no limit").most, None);
        assert_eq!(resolved(7).expect("a limit").most, NonZeroUsize::new(7));
        for number in [0, -2] {
            let told = resolved(number).expect_err("neither").to_string();
            assert!(told.contains("max-allocation-candidates") && told.contains("-1"), "{told}");
        }
    }

    #[test]
    fn each_answer_draws_anew() {
        let config = CandidatesConfig { randomize: true, ..Default::default() };
        let seeds: Vec<_> = (0..3).map(|_| config.generation().seed).collect();
        assert!(seeds.iter().all(Option::is_some) && seeds[0] != seeds[1] && seeds[1] != seeds[2]);
    }
}
