//! Which measurement was asked for? Those that need more than one program; `cargo bench` has the
//! others.

mod data;
mod echo;
mod figures;
mod fleet;
mod http;
mod load;
mod options;
mod place;
mod process;
mod report;
mod rounds;
mod scale;
mod service;

use crate::bench::options::{Options, USAGE};
use crate::steps::Stop;

/// Measures what the words behind `bench` ask for.
pub(crate) fn run(words: &[&str]) -> Result<(), Stop> {
    match words {
        ["scale", "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        ["scale", words @ ..] => scale::run(&Options::parse(words)?),
        _ => Err(Stop::Missing(format!(
            "no such measurement: {}\n\n{USAGE}",
            words.join(" ")
        ))),
    }
}
