//! What does libFuzzer find in `text_and_opaque`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("text_and_opaque", bytes);
});
