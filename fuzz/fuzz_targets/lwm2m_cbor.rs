//! What does libFuzzer find in `lwm2m_cbor`?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    signalbox_fuzz::run("lwm2m_cbor", bytes);
});
