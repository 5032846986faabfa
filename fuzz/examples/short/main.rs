//! Do the codecs keep their laws for a few seconds of mutated inputs, without libFuzzer?
//!
//! `short [--seconds N] [--seed S] [--target NAME]`: every input of every corpus, then mutated
//! ones, each target for its share of the time, or one target for all of it. The inputs follow from
//! the seed alone, so that the same seed reproduces the same failure.

mod mutation;

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use signalbox_fuzz::{FuzzOutcome, TARGETS, Target};

use self::mutation::Mutator;

/// Inputs that decode join the pool to be mutated: they lead further. Bounded, so that the corpus
/// is not lost among them.
const POOL_MAX: usize = 512;

/// Inputs between two looks at the clock.
const INPUTS_PER_LOOK: u64 = 64;

/// The command line options.
struct Options {
    seconds: u64,
    seed: u64,
    /// The name of the only target, if there is one.
    target: Option<String>,
}

/// The result of one target.
struct Outcome {
    inputs: u64,
    read: u64,
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("usage: short [--seconds N] [--seed S] [--target NAME]");
        return ExitCode::from(2);
    };
    println!(
        "fuzzing for {} s with seed {}",
        options.seconds, options.seed
    );
    let is_chosen = |target: &Target| options.target.as_deref().is_none_or(|it| it == target.name);
    let targets: Vec<Target> = TARGETS.into_iter().filter(is_chosen).collect();
    if targets.is_empty() {
        eprintln!("no such target");
        return ExitCode::from(2);
    }
    let share = Duration::from_secs(options.seconds) / targets.len() as u32;
    for target in targets {
        match run(target, share, options.seed) {
            Ok(Outcome { inputs, read }) => {
                println!("{:<18} {inputs:>9} inputs, {read:>8} read", target.name);
            }
            Err(failure) => {
                eprintln!("{}: {failure}", target.name);
                eprintln!("again with: cargo xtask fuzz --seed {}", options.seed);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn options() -> Option<Options> {
    let mut options = Options {
        seconds: 20,
        // Keyed by the system's entropy: a seed that no run had before.
        seed: RandomState::new().hash_one(0),
        target: None,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--seconds" => options.seconds = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--target" => options.target = Some(value),
            _ => return None,
        }
    }
    Some(options)
}

fn run(target: Target, share: Duration, seed: u64) -> Result<Outcome, String> {
    let mut pool = corpus(target.name)?;
    let mut outcome = Outcome { inputs: 0, read: 0 };
    for input in &pool {
        outcome.count(try_input(target, input)?);
    }
    if outcome.read == 0 {
        return Err("nothing of its corpus is read".into());
    }
    let mut mutator = Mutator::new(seed);
    let begun = Instant::now();
    while !outcome.inputs.is_multiple_of(INPUTS_PER_LOOK) || begun.elapsed() < share {
        let input = mutator.next(&pool);
        let fate = try_input(target, &input)?;
        outcome.count(fate);
        if fate == FuzzOutcome::Read && pool.len() < POOL_MAX && !pool.contains(&input) {
            pool.push(input);
        }
    }
    Ok(outcome)
}

impl Outcome {
    fn count(&mut self, fate: FuzzOutcome) {
        self.inputs += 1;
        self.read += u64::from(fate == FuzzOutcome::Read);
    }
}

/// Runs one input; a panic prints its own message.
fn try_input(target: Target, input: &[u8]) -> Result<FuzzOutcome, String> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|_| {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("a law is broken by these bytes: {hex}")
    })
}

/// The inputs of a target, in the order of their names.
fn corpus(name: &str) -> Result<Vec<Vec<u8>>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).map_err(unreadable)? {
        files.push(entry.map_err(unreadable)?.path());
    }
    files.sort();
    let inputs = files.iter().map(fs::read);
    inputs.collect::<Result<_, _>>().map_err(unreadable)
}
