//! Does the operator's log have the trace of the call when a device panics or a step is not saved?

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use engine::ids::TraceId;
use engine::supervision::Unserved;
use protocol::coap::code::Code;
use tracing_subscriber::filter::LevelFilter;

use crate::faulty::FaultMode;
use crate::test_service::{TestService, register};

/// The log so far, of all tests of the program.
static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[test]
fn the_line_of_a_panicked_device_has_the_trace_of_the_call() {
    listen();
    let setup = TestService::new(["meter"]);
    let trace = trace(&setup);
    setup.commits.set(FaultMode::PanicOnce);
    assert_eq!(setup.submit_under(trace, "meter"), Err(Unserved::Failed));
    setup.until(|| has_line(trace, "the actor of a device panicked and is restored"));
}

#[test]
fn the_line_of_an_unsaved_step_has_the_trace_of_the_call() {
    listen();
    let setup = TestService::new(["meter"]);
    let trace = trace(&setup);
    setup.commits.set(FaultMode::Unavailable);
    assert_eq!(setup.submit_under(trace, "meter"), Err(Unserved::Failed));
    setup.until(|| has_line(trace, "a step was not saved"));
}

#[test]
fn the_line_of_an_unsaved_attempt_has_the_trace_of_its_request() {
    listen();
    let setup = TestService::new(["meter"]);
    let trace = trace(&setup);
    assert!(matches!(setup.submit_under(trace, "meter"), Ok(Ok(_))));
    setup.commits.set(FaultMode::Unavailable);
    let mut device = setup.device();
    device.send(&register("meter"));
    setup.until(|| has_line(trace, "a step was not saved"));
    setup.commits.set(FaultMode::Well);
    let answer = device.ask_until_answered(&register("meter"));
    assert_eq!(answer.code, Code::CREATED);
}

/// Records warnings and errors from now on.
pub(crate) fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        tracing_subscriber::fmt()
            .json()
            .with_max_level(LevelFilter::WARN)
            .with_writer(|| Logged)
            .init();
    });
}

struct Logged;

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        logged.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn has_line(trace: TraceId, message: &str) -> bool {
    is_logged(&format!(r#""trace":"{trace}""#), message)
}

/// Whether a line with this field has this message.
pub(crate) fn is_logged(field: &str, message: &str) -> bool {
    let logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    let logged = String::from_utf8_lossy(&logged);
    logged
        .lines()
        .any(|line| line.contains(field) && line.contains(message))
}

fn trace(setup: &TestService) -> TraceId {
    TraceId::new(setup.clock.moment().uuid())
}
