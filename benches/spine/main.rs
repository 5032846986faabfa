//! How fast is the spine, end to end and against its yardsticks?
//!
//! `cargo bench --bench spine -- [bootstraps [DEVICES,..]|campaign [OPTION VALUE]..|
//! cluster [OPTION VALUE]..|console [OPTION VALUE]..|creates|deliveries [DEVICES,..]|
//! flood [OPTION VALUE]..|log [ENTRIES,..]|mqtt [DEVICES,..]|outage [EVENTS,..]|
//! peers [OPTION VALUE]..|requests [EXISTING,..]|scale [OPTION VALUE]..|sends [DEVICES,..]|
//! sessions [DEVICES,..]|sms [MESSAGES,..]|soak [OPTION VALUE]..|updates [DEVICES,..]]` prints
//! tables and ratios; the default is `creates` and `updates`. Everything runs in this process,
//! except the service of `bootstraps`, `campaign`, `cluster`, `console`, `deliveries`, `flood`,
//! `mqtt`, `outage`, `peers`, `scale`, `sessions`, `sms` and `soak`; each figure except those of
//! `cluster`, `scale` and `soak` stands beside its yardstick, measured in the same run in turns, or
//! for `console` with a small fleet.

#[path = "../fleet.rs"]
mod fleet;
#[path = "../../tests/support/kernel.rs"]
mod kernel;
#[path = "../known.rs"]
mod known;
#[path = "../../tests/support/playwright.rs"]
mod playwright;
#[allow(dead_code, reason = "tests wait for more")]
#[path = "../../tests/support/poll.rs"]
mod poll;
#[allow(
    dead_code,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have servers of their own"
)]
#[path = "../../tests/support/postgres.rs"]
mod postgres;
#[allow(
    dead_code,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it is written for tests, which talk with more programs"
)]
#[path = "../../tests/support/program.rs"]
mod program;
#[path = "../talk.rs"]
mod talk;

mod bare;
mod bootstraps;
mod broker;
mod callers;
mod campaign;
mod centre;
mod cluster;
mod console;
mod creates;
mod deliveries;
mod device_group;
mod device_link;
mod echo;
mod endpoint;
mod event_batches;
mod flood;
mod line;
mod load;
mod log;
mod mqtt;
mod outage;
mod peers;
mod requests;
mod scale;
mod sends;
mod service;
mod sessions;
mod shelf;
mod sms;
mod soak;
mod thread;
mod unwritten;
mod updates;
mod webhook;

use std::process::ExitCode;

use actix_rt::System;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Cargo passes `--bench` to measure, and nothing to test the build.
    if !words.iter().any(|word| word == "--bench") {
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| *word != "--bench")
        .collect();
    let (figure, numbers) = match wanted.as_slice() {
        ["campaign", options @ ..] => {
            campaign::run(options);
            return ExitCode::SUCCESS;
        }
        ["cluster", options @ ..] => {
            cluster::run(options);
            return ExitCode::SUCCESS;
        }
        ["console", options @ ..] => {
            console::run(options);
            return ExitCode::SUCCESS;
        }
        ["flood", options @ ..] => {
            flood::run(options);
            return ExitCode::SUCCESS;
        }
        ["peers", options @ ..] => {
            peers::run(options);
            return ExitCode::SUCCESS;
        }
        ["scale", options @ ..] => {
            scale::run(options);
            return ExitCode::SUCCESS;
        }
        ["soak", options @ ..] => {
            soak::run(options);
            return ExitCode::SUCCESS;
        }
        [] => (None, None),
        [figure] => (Some(*figure), None),
        [figure, text] => match numbers(text) {
            Some(numbers) => (Some(*figure), Some(numbers)),
            None => return wrong_usage(),
        },
        _ => return wrong_usage(),
    };
    let or = |usual: &[u32]| numbers.clone().unwrap_or_else(|| usual.to_vec());
    let system = System::new();
    match figure {
        None => system.block_on(async {
            creates::run().await;
            updates::run(&updates::FLEETS).await;
        }),
        Some("bootstraps") => bootstraps::run(&or(&bootstraps::FLEETS)),
        Some("creates") if numbers.is_none() => system.block_on(creates::run()),
        Some("deliveries") => system.block_on(deliveries::run(&or(&deliveries::FLEETS))),
        Some("log") => system.block_on(log::run(&or(&log::ENTRIES))),
        Some("mqtt") => system.block_on(mqtt::run(&or(&mqtt::FLEETS))),
        Some("outage") => system.block_on(outage::run(&or(&outage::EVENTS))),
        Some("requests") => system.block_on(requests::run(&or(&requests::EXISTING))),
        Some("sends") => system.block_on(sends::run(&or(&sends::FLEETS))),
        Some("sessions") => sessions::run(&or(&sessions::FLEETS)),
        Some("sms") => system.block_on(sms::run(&or(&sms::MESSAGES))),
        Some("updates") => system.block_on(updates::run(&or(&updates::FLEETS))),
        Some(_) => return wrong_usage(),
    }
    ExitCode::SUCCESS
}

/// Comma-separated numbers, none of them 0.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    text.split(',').map(number).collect()
}

fn wrong_usage() -> ExitCode {
    eprintln!(
        "usage: cargo bench --bench spine -- \
         [bootstraps [DEVICES,..]|campaign [OPTION VALUE]..|cluster [OPTION VALUE]..|\
         console [OPTION VALUE]..|creates|deliveries [DEVICES,..]|flood [OPTION VALUE]..|\
         log [ENTRIES,..]|mqtt [DEVICES,..]|outage [EVENTS,..]|peers [OPTION VALUE]..|\
         requests [EXISTING,..]|scale [OPTION VALUE]..|sends [DEVICES,..]|sessions [DEVICES,..]|\
         sms [MESSAGES,..]|soak [OPTION VALUE]..|updates [DEVICES,..]]"
    );
    ExitCode::from(2)
}
