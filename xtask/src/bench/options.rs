//! What is asked of `cargo xtask bench scale`? Fleets, rounds, and how long each takes.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::steps::Stop;

/// How the command is used.
pub(crate) const USAGE: &str = "\
cargo xtask bench scale [OPTION VALUE]..

  --devices 10000,100000,1000000   fleets
  --rounds 5                       rounds of what is cheap to repeat
  --setup-rounds ROUNDS            rounds of import and registration, each on a new store
  --seconds 10                     how long updates, and how long actions, are measured
  --idle-seconds 20                how long an idle fleet is watched
  --out target/scale.json          where the report goes
  --echo yes                       whether updates are set against a bare echo: yes or no
  --build yes                      no: measures the program that is there, whatever its commit
";

/// What is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Options {
    /// Devices of each fleet.
    pub(crate) fleets: Vec<u32>,
    /// Rounds of what is cheap to repeat.
    pub(crate) rounds: u32,
    /// Rounds of import and registration.
    pub(crate) setup_rounds: u32,
    /// How long updates, and how long actions, are measured.
    pub(crate) measured_for: Duration,
    /// How long an idle fleet is watched.
    pub(crate) idle_for: Duration,
    /// Where the report goes.
    pub(crate) out: PathBuf,
    /// What updates are set against.
    pub(crate) yardstick: Yardstick,
    /// Which program is measured.
    pub(crate) program: Program,
    /// The command as it was typed.
    pub(crate) command: String,
}

/// What updates are set against.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Yardstick {
    /// A bare echo of the same datagram, in turns.
    Echo,
    /// Nothing.
    None,
}

/// Which program is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Program {
    /// The one the tree makes.
    OfTree,
    /// The one that is there, whatever it was made of.
    AsItIs,
}

impl Options {
    /// Reads the words behind `bench scale`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut setup_rounds = None;
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err(wrong(&format!("no value for {}", pair.concat())));
            };
            match *name {
                "--devices" => options.fleets = numbers(value)?,
                "--rounds" => options.rounds = number(value)?,
                "--setup-rounds" => setup_rounds = Some(number(value)?),
                "--seconds" => options.measured_for = seconds(value)?,
                "--idle-seconds" => options.idle_for = seconds(value)?,
                "--out" => options.out = PathBuf::from(value),
                "--echo" => {
                    options.yardstick = choice(value, Yardstick::Echo, Yardstick::None)?;
                }
                "--build" => options.program = choice(value, Program::OfTree, Program::AsItIs)?,
                _ => return Err(wrong(&format!("no such option: {name}"))),
            }
        }
        options.setup_rounds = setup_rounds.unwrap_or(options.rounds);
        options.command = ["cargo xtask bench scale"]
            .iter()
            .chain(words)
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        Ok(options)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fleets: vec![10_000, 100_000, 1_000_000],
            rounds: 5,
            setup_rounds: 5,
            measured_for: Duration::from_secs(10),
            idle_for: Duration::from_secs(20),
            out: PathBuf::from("target/scale.json"),
            yardstick: Yardstick::Echo,
            program: Program::OfTree,
            command: String::new(),
        }
    }
}

/// One number or several with commas between them; none of them is 0.
fn numbers(text: &str) -> Result<Vec<u32>, Stop> {
    text.split(',').map(number).collect()
}

fn number(text: &str) -> Result<u32, Stop> {
    let number = u32::from_str(text).ok().filter(|number| *number > 0);
    number.ok_or_else(|| wrong(&format!("not a number above 0: {text}")))
}

fn seconds(text: &str) -> Result<Duration, Stop> {
    Ok(Duration::from_secs(number(text)?.into()))
}

fn choice<T>(text: &str, yes: T, no: T) -> Result<T, Stop> {
    match text {
        "yes" => Ok(yes),
        "no" => Ok(no),
        _ => Err(wrong(&format!("neither yes nor no: {text}"))),
    }
}

fn wrong(what: &str) -> Stop {
    Stop::Missing(format!("{what}\n\n{USAGE}"))
}

#[cfg(test)]
mod tests {
    use super::{Options, Program, Yardstick};
    use std::time::Duration;

    #[test]
    fn without_options_the_whole_table_is_made() {
        let options = Options::parse(&[]).unwrap();
        assert_eq!(options.fleets, [10_000, 100_000, 1_000_000]);
        assert_eq!((options.rounds, options.setup_rounds), (5, 5));
        assert_eq!(options.command, "cargo xtask bench scale");
    }

    #[test]
    fn a_set_up_is_repeated_as_often_as_the_rest_unless_it_is_said() {
        let options = Options::parse(&["--rounds", "3"]).unwrap();
        assert_eq!((options.rounds, options.setup_rounds), (3, 3));
        let options = Options::parse(&["--setup-rounds", "1", "--rounds", "3"]).unwrap();
        assert_eq!((options.rounds, options.setup_rounds), (3, 1));
    }

    #[test]
    fn every_option_is_read() {
        let words = "--devices 7,8 --seconds 2 --idle-seconds 3 --out a.json --echo no --build no";
        let words: Vec<&str> = words.split(' ').collect();
        let options = Options::parse(&words).unwrap();
        assert_eq!(options.fleets, [7, 8]);
        assert_eq!(options.measured_for, Duration::from_secs(2));
        assert_eq!(options.idle_for, Duration::from_secs(3));
        assert_eq!(options.out, std::path::Path::new("a.json"));
        assert_eq!(options.yardstick, Yardstick::None);
        assert_eq!(options.program, Program::AsItIs);
        let command = format!("cargo xtask bench scale {}", words.join(" "));
        assert_eq!(options.command, command);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (words, named) in [
            (vec!["--rounds"], "no value for --rounds"),
            (vec!["--rounds", "0"], "not a number above 0: 0"),
            (vec!["--devices", "1,,2"], "not a number above 0: "),
            (vec!["--echo", "perhaps"], "neither yes nor no: perhaps"),
            (vec!["--loud", "1"], "no such option: --loud"),
        ] {
            let stop = Options::parse(&words).unwrap_err();
            assert_eq!(stop.status(), 2);
            assert!(stop.to_string().starts_with(named), "{stop}");
        }
    }
}
