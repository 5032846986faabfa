//! Which measurement was requested? The spine bench, which drives the program an operator runs,
//! makes those that need more than one program.

use crate::prepare;
use crate::steps::{self, Stop, cargo};

const USAGE: &str = "\
cargo xtask bench campaign [OPTION VALUE]..  firmware campaigns beside bare transfers
cargo xtask bench cluster [OPTION VALUE]..   faults of three nodes and three PostgreSQL servers
cargo xtask bench console [OPTION VALUE]..   the views of the console in Chromium
cargo xtask bench flood [OPTION VALUE]..     updates of a fleet while the service is flooded
cargo xtask bench openssl                    the DTLS of the service beside OpenSSL
cargo xtask bench peers [OPTION VALUE]..     the service and Leshan's server under the same load,
                                             then what `bench openssl` measures
cargo xtask bench scale [OPTION VALUE]..     fleets up to a million
cargo xtask bench soak [OPTION VALUE]..      a mixed load with kills, and its books
cargo xtask bench MEASUREMENT [NUMBERS]      as `cargo bench --bench spine -- MEASUREMENT [NUMBERS]`
";

/// Runs the measurement that the arguments after `bench` name, built for release.
pub(crate) fn run(words: &[&str]) -> Result<(), Stop> {
    if let [] | ["help" | "--help" | "-h"] = words {
        print!("{USAGE}");
        return Ok(());
    }
    match words {
        ["openssl"] => {
            prepare::openssl()?;
            openssl(&[])
        }
        ["peers", options @ ..] if !options.contains(&"--help") => {
            prepare::peers()?;
            prepare::openssl()?;
            spine(words)?;
            openssl(options)
        }
        ["cluster", ..] => {
            prepare::cluster()?;
            spine(words)
        }
        ["console", ..] => {
            prepare::browser()?;
            spine(words)
        }
        _ => spine(words),
    }
}

fn spine(words: &[&str]) -> Result<(), Stop> {
    let mut bench = cargo();
    bench.args(["bench", "--locked", "--bench", "spine", "--"]);
    steps::run(bench.args(words))
}

/// Beside OpenSSL, with as many sessions as `--devices` says.
fn openssl(options: &[&str]) -> Result<(), Stop> {
    let mut bench = cargo();
    bench.args(["bench", "--locked", "-p", "dtls", "--bench", "openssl"]);
    let devices = options.iter().skip_while(|word| **word != "--devices");
    if let Some(devices) = devices.clone().nth(1) {
        bench.env("SESSIONS", devices);
    }
    steps::run(&mut bench)
}
