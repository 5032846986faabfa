//! What does libFuzzer find in `dtls_kept_sessions`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("dtls_kept_sessions", bytes);
});
