//! What does libFuzzer find in `smpp`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("smpp", bytes);
});
