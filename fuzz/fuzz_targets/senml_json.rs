//! What does libFuzzer find in `senml_json`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("senml_json", bytes);
});
