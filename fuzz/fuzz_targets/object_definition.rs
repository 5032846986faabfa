//! What does libFuzzer find in `object_definition`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("object_definition", bytes);
});
