//! Where are the bytes of a device? The memory of an idle registered device.
//!
//! `cargo bench --bench memory -- [devices]` builds machines as the registry restores them, then
//! whole device actors on an arbiter, and prints the growth of the process per device. What counts
//! is the memory that the system keeps resident, so that is measured.

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

/// The default number of devices: enough that the memory which does not grow with them is lost in
/// the last digit.
const DEVICES: u32 = 200_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Cargo passes `--bench` to measure, and nothing to test the build.
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
    // Actors first: their thread must not get memory that was used and freed before.
    System::new().block_on(actors::run(devices));
    machines::run(devices);
    ExitCode::SUCCESS
}

/// Prints the cost of each device since the resident memory had this size.
fn show(what: &str, before: u64, devices: u32) {
    let grown = resident().saturating_sub(before);
    let devices = u64::from(devices);
    println!("| {what} | {} |", (grown + devices / 2) / devices);
}

/// The resident memory of this process in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = pages
        .split(' ')
        .nth(1)
        .expect("the second number is what is resident");
    pages.parse::<u64>().expect("it is a number") * PAGE_BYTES
}

/// The page size of the systems we measure on.
const PAGE_BYTES: u64 = 4_096;
