//! How fast is the spine, end to end and against what it stands on?
//!
//! `cargo bench --bench spine -- [creates|log [ENTRIES,..]|requests [EXISTING,..]|updates
//! [DEVICES,..]]` prints tables and ratios; without a word it makes those of `creates` and of
//! `updates`.
//! Everything runs in this process; each figure stands beside its yardstick, measured in the same
//! run in turns.

#[path = "../fleet.rs"]
mod fleet;
#[path = "../known.rs"]
mod known;
#[path = "../talk.rs"]
mod talk;

mod callers;
mod creates;
mod crowd;
mod echo;
mod figures;
mod line;
mod log;
mod requests;
mod shelf;
mod thread;
mod unwritten;
mod updates;

use std::process::ExitCode;

use actix_rt::System;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Cargo says `--bench` when it is to be measured, and nothing when it is only to be built.
    if !words.iter().any(|word| word == "--bench") {
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| *word != "--bench")
        .collect();
    match wanted.as_slice() {
        [] => System::new().block_on(async {
            creates::run().await;
            updates::run(&updates::FLEETS).await;
        }),
        ["requests"] => System::new().block_on(requests::run(&requests::EXISTING)),
        ["requests", existing] => match numbers(existing) {
            Some(existing) => System::new().block_on(requests::run(&existing)),
            None => return wrong_usage(),
        },
        ["log"] => System::new().block_on(log::run(&log::ENTRIES)),
        ["log", entries] => match numbers(entries) {
            Some(entries) => System::new().block_on(log::run(&entries)),
            None => return wrong_usage(),
        },
        ["creates"] => System::new().block_on(creates::run()),
        ["updates"] => System::new().block_on(updates::run(&updates::FLEETS)),
        ["updates", fleets] => match numbers(fleets) {
            Some(fleets) => System::new().block_on(updates::run(&fleets)),
            None => return wrong_usage(),
        },
        _ => return wrong_usage(),
    }
    ExitCode::SUCCESS
}

/// Numbers with commas between them, as many as one likes but none of them 0.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    text.split(',').map(number).collect()
}

fn wrong_usage() -> ExitCode {
    eprintln!(
        "usage: cargo bench --bench spine -- \
         [creates|log [ENTRIES,..]|requests [EXISTING,..]|updates [DEVICES,..]]"
    );
    ExitCode::from(2)
}
