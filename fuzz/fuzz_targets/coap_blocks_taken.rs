//! What does libFuzzer find in `coap_blocks_taken`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("coap_blocks_taken", bytes);
});
