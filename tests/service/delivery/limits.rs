//! What happens to events when the backlog or the disk is full?

use protocol::coap::code::Code;

use super::{
    DeliveryService, PATH, PRIVATE, STEADY, counted, metered, once_delivered, payload_of, values_of,
};
use crate::vocabulary::endpoint::{Endpoint, Reply};
use crate::vocabulary::poll::until;

/// The smallest backlog limit that an operator may set.
const BACKLOG_MAX: u64 = 10_000;

/// Samples in one message of a device: as many as fit a datagram.
const SAMPLES: u64 = 60;

#[test]
fn events_beyond_the_backlog_limit_become_dead_letters_and_are_logged() {
    let backlog = BACKLOG_MAX.to_string();
    let settings = [
        ("SIGNALBOX_DELIVERY_BACKLOG_MAX", backlog.as_str()),
        ("SIGNALBOX_DELIVERY_RETRY_MS", "3600000"),
    ];
    let setup = DeliveryService::with(&settings);
    let endpoint = Endpoint::replying(|_, _| Reply::Status(503));
    // They register first: an event of another type counts as waiting until it is passed over.
    let meters = ["meter-1", "meter-2"].map(|device| setup.meter(device));
    let id = setup.values_to(&endpoint);
    let mut samples_sent = 0;
    for mut meter in meters {
        for message in 0..100 {
            let first = 1_700_000_000 + message * SAMPLES;
            let sample = |second: u64| format!(r#"{{"t":{second},"v":1}}"#);
            let mut samples: Vec<_> = (0..SAMPLES).map(sample).collect();
            samples[0] = format!(r#"{{"bn":"{PATH}","bt":{first},"v":1}}"#);
            let payload = format!("[{}]", samples.join(","));
            assert_eq!(meter.send_payload(&payload), Code::CHANGED);
            samples_sent += SAMPLES;
        }
    }
    assert!(samples_sent > BACKLOG_MAX);
    let entry = until("an entry of the log", || {
        setup.entry("CloudIntegrator[EventsDeadLettered]")
    });
    assert_eq!(entry["category"], "error");
    let backlog = until("no more than may wait", || {
        let backlog = setup.shown(&id)["backlog"].clone();
        (backlog["waiting"].as_u64()? <= BACKLOG_MAX).then_some(backlog)
    });
    let of = |name: &str| backlog[name].as_u64().unwrap();
    assert_eq!(
        of("deadLetters") + of("waiting"),
        samples_sent,
        "none is lost"
    );
}

#[test]
fn on_a_full_disk_devices_are_not_acknowledged_and_nothing_acknowledged_is_lost() {
    let (mut setup, mut endpoint, id, mut meter) = metered(&[STEADY]);
    endpoint.close();
    meter.send(1.0);
    setup.service.kill();
    let reserve = setup.service.reserve_above_free();
    let full = ("SIGNALBOX_DISK_RESERVE_MIB", reserve.as_str());
    setup.service.start_again_with(&[PRIVATE, STEADY, full]);
    setup.caller.follow(&setup.service);
    let code = meter.send_payload(&payload_of(2.0));
    assert_eq!(
        code,
        Code::SERVICE_UNAVAILABLE,
        "it is asked to retry later"
    );
    endpoint.open();
    setup.restart_with(&[PRIVATE, STEADY]);
    // The device keeps the value that was not acknowledged and sends it again.
    meter.send(2.0);
    let posted = once_delivered(&endpoint, 2);
    assert_eq!(values_of(&posted, "meter-1"), counted(2));
    setup.once_done(&id);
}
