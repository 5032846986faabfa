//! What does libFuzzer find in `senml_cbor`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("senml_cbor", bytes);
});
