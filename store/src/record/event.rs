//! How is it kept what a device said or did?

use engine::Path;
use engine::event::{Cause, Conclusion, Event, Failure, Happening, PayloadKept, Speaker, Telemetry};
use engine::ids::{ActionId, DeviceKey, EventId};
use engine::moment::Timestamp;
use minicbor::bytes::{ByteArray, ByteVec};
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::value::{ToldV1, read_told, told_records};
use super::{Unreadable, code, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct EventV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[n(2)]
    device: ByteArray<16>,
    #[n(3)]
    at_ms: i64,
    #[n(4)]
    happening: HappeningV1,
}

#[derive(Decode, Encode)]
enum HappeningV1 {
    #[n(0)]
    Telemetry(#[n(0)] TelemetryV1),
    #[n(1)]
    Lifecycle(#[n(0)] u8),
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct TelemetryV1 {
    #[n(0)]
    source: u8,
    #[n(1)]
    cause: CauseV1,
    #[n(2)]
    values: Vec<ToldV1>,
}

#[derive(Decode, Encode)]
enum CauseV1 {
    #[n(0)]
    Observation(#[n(0)] ByteVec),
    #[n(1)]
    Action(#[n(0)] ByteArray<16>),
}

/// Writes an event.
pub(crate) fn write_event(event: &Event) -> Vec<u8> {
    let record = EventV1 {
        id: ByteArray::from(*event.id.as_bytes()),
        customer: event.customer.as_str(),
        device: ByteArray::from(*event.device.as_bytes()),
        at_ms: event.at.as_ms(),
        happening: match &event.happening {
            Happening::Telemetry(told) => HappeningV1::Telemetry(telemetry_record(told)),
            Happening::Lifecycle(what) => HappeningV1::Lifecycle(code::of_lifecycle(*what)),
        },
    };
    write(VERSION, &record)
}

/// Reads an event.
pub(crate) fn read_event(value: &[u8]) -> Result<Event, Unreadable> {
    let record: EventV1<'_> = read(VERSION, value)?;
    Ok(Event {
        id: EventId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        device: DeviceKey::from_bytes(record.device.into()),
        at: Timestamp::from_ms(record.at_ms),
        happening: match record.happening {
            HappeningV1::Telemetry(told) => Happening::Telemetry(read_telemetry(told)?),
            HappeningV1::Lifecycle(what) => Happening::Lifecycle(code::lifecycle(what)?),
        },
    })
}

fn telemetry_record(told: &Telemetry) -> TelemetryV1 {
    TelemetryV1 {
        source: code::of_protocol(told.source),
        cause: match told.cause {
            Cause::Observation(path) => CauseV1::Observation(path.to_bytes().to_vec().into()),
            Cause::Action(id) => CauseV1::Action(ByteArray::from(*id.as_bytes())),
        },
        values: told_records(&told.values),
    }
}

fn read_telemetry(record: TelemetryV1) -> Result<Telemetry, Unreadable> {
    Ok(Telemetry {
        source: code::protocol(record.source)?,
        cause: match record.cause {
            CauseV1::Observation(path) => Cause::Observation(
                Path::from_bytes(&path).ok_or(Unreadable::Damaged("no observed path"))?,
            ),
            CauseV1::Action(id) => Cause::Action(ActionId::from_bytes(id.into())),
        },
        values: read_told(record.values)?,
    })
}
