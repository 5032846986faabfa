//! What does libFuzzer find in `dtls_conversation`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("dtls_conversation", bytes);
});
