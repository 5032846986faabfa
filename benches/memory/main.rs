//! Where are the bytes of a device? What a registered device that does nothing costs in memory.
//!
//! `cargo bench --bench memory -- [devices]` builds machines as the registry restores them, then
//! whole device actors on an arbiter, and prints what the process grew by, for each device. What
//! counts is what the system has to keep resident, so that is what is measured.

#[path = "../fleet.rs"]
mod fleet;
#[path = "../talk.rs"]
mod talk;

mod actors;
mod kept;
mod machines;
mod made;

use std::process::ExitCode;

use actix_rt::System;

/// Devices unless another number is given: enough that what does not grow with them is lost in
/// the last digit.
const DEVICES: u32 = 200_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Cargo says `--bench` when it is to be measured, and nothing when it is only to be built.
    if !words.iter().any(|word| word == "--bench") {
        return ExitCode::SUCCESS;
    }
    let number = words.iter().find(|word| *word != "--bench");
    let Ok(devices) = number.map_or(Ok(DEVICES), |number| number.parse()) else {
        eprintln!("usage: cargo bench --bench memory -- [devices]");
        return ExitCode::from(2);
    };
    println!("## Bytes per device, {devices} devices\n");
    println!("| | bytes |");
    println!("|---|---|");
    // Actors first: their thread must not get memory that was used and let go before.
    System::new().block_on(actors::run(devices));
    machines::run(devices);
    ExitCode::SUCCESS
}

/// Prints what each of so many devices cost since so much was resident.
fn show(what: &str, before: u64, devices: u32) {
    let grown = resident().saturating_sub(before);
    let devices = u64::from(devices);
    println!("| {what} | {} |", (grown + devices / 2) / devices);
}

/// How many bytes of this process are in memory.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = pages
        .split(' ')
        .nth(1)
        .expect("the second number is what is resident");
    pages.parse::<u64>().expect("it is a number") * PAGE_BYTES
}

/// The pages of the systems we measure on.
const PAGE_BYTES: u64 = 4_096;
