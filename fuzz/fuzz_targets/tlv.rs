//! What does libFuzzer find in `tlv`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("tlv", bytes);
});
