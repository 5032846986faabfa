//! What does libFuzzer find in `cbor`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("cbor", bytes);
});
