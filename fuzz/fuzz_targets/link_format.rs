//! What does libFuzzer find in `link_format`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("link_format", bytes);
});
