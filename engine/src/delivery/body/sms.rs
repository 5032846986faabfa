//! How are the SMS events of seed 6 written? As its tables have them; in the history of a device
//! without the organisation.

use serde::Serialize;

use super::words::sms_status;
use crate::event::EventContent;
use crate::ids::SmsId;
use crate::moment::Timestamp;
use crate::sms::{MultiPartInfo, ReceivedSms, SmsEndpoint, SmsReport, SmsStatus};

/// The content of an SMS event.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum SmsBody {
    Received(ReceivedBody),
    Report(ReportBody),
}

/// A message of a device (seed 6.1).
#[derive(Serialize)]
pub(super) struct ReceivedBody {
    id: u64,
    payload: String,
    submit_date: String,
    dest_address: String,
    source_address: String,
    dcs: u8,
    endpoint: EndpointBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    organisation: Option<OrganisationBody>,
    multi_part_info: MultiPartBody,
    pid: u8,
}

/// The final status of a message to a device (seed 6.2).
#[derive(Serialize)]
pub(super) struct ReportBody {
    id: u64,
    final_date: String,
    submit_date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    organisation: Option<OrganisationBody>,
    endpoint: EndpointBody,
    status: StatusBody,
}

#[derive(Serialize)]
struct EndpointBody {
    id: u64,
    name: String,
}

#[derive(Serialize)]
struct OrganisationBody {
    id: u64,
}

#[derive(Serialize)]
struct MultiPartBody {
    partno: u8,
    total: u8,
    identifier: u16,
}

#[derive(Serialize)]
struct StatusBody {
    id: u8,
    status: &'static str,
}

/// The event as it is sent to the endpoint of an organisation; nothing for other events.
pub fn render_sms(content: &EventContent, organisation: u64) -> Option<Vec<u8>> {
    let organisation = Some(OrganisationBody { id: organisation });
    let body = match content {
        EventContent::SmsReceived(received) => SmsBody::Received(ReceivedBody {
            organisation,
            ..ReceivedBody::of(received)
        }),
        EventContent::SmsReport(report) => SmsBody::Report(ReportBody {
            organisation,
            ..ReportBody::of(report)
        }),
        EventContent::Telemetry(_)
        | EventContent::Data(_)
        | EventContent::Lifecycle(_)
        | EventContent::Error(_)
        | EventContent::ActionResult(_) => return None,
    };
    Some(serde_json::to_vec(&body).expect("the keys of a body are text, and memory takes it"))
}

/// The events of a test: one of each kind (seed 6.3).
pub fn samples(at: Timestamp) -> [EventContent; 2] {
    let endpoint = SmsEndpoint {
        number: 1,
        name: "Test device".into(),
    };
    let received = ReceivedSms {
        id: SmsId::first_at(at),
        payload: "This is a test of the SMS forwarder.".into(),
        submitted_at: at,
        dest: "1234".into(),
        source: "882280000000000".into(),
        dcs: 0,
        pid: 0,
        part: MultiPartInfo::WHOLE,
        endpoint: endpoint.clone(),
    };
    let report = SmsReport {
        id: SmsId::first_at(at),
        submitted_at: at,
        final_at: at,
        status: SmsStatus::Delivered,
        endpoint,
    };
    [
        EventContent::SmsReceived(Box::new(received)),
        EventContent::SmsReport(Box::new(report)),
    ]
}

impl ReceivedBody {
    pub(super) fn of(received: &ReceivedSms) -> Self {
        Self {
            id: received.id.number(),
            payload: received.payload.to_string(),
            submit_date: received.submitted_at.spaced_s().to_string(),
            dest_address: received.dest.to_string(),
            source_address: received.source.to_string(),
            dcs: received.dcs,
            endpoint: EndpointBody::of(&received.endpoint),
            organisation: None,
            multi_part_info: MultiPartBody {
                partno: received.part.number,
                total: received.part.total,
                identifier: received.part.identifier,
            },
            pid: received.pid,
        }
    }
}

impl ReportBody {
    pub(super) fn of(report: &SmsReport) -> Self {
        Self {
            id: report.id.number(),
            final_date: report.final_at.spaced_s().to_string(),
            submit_date: report.submitted_at.spaced_s().to_string(),
            organisation: None,
            endpoint: EndpointBody::of(&report.endpoint),
            status: StatusBody {
                id: report.status.number(),
                status: sms_status(report.status),
            },
        }
    }
}

impl EndpointBody {
    fn of(endpoint: &SmsEndpoint) -> Self {
        Self {
            id: endpoint.number,
            name: endpoint.name.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_events_have_the_fields_of_the_seed_and_no_others() {
        let noon = Timestamp::from_ms(1_795_521_600_123);
        let [received, report] = samples(noon).map(|it| read(render_sms(&it, 42)));
        let id = SmsId::first_at(noon).number();
        let expected = json!({
            "id": id,
            "payload": "This is a test of the SMS forwarder.",
            "submit_date": "2026-11-24 12:00:00",
            "dest_address": "1234",
            "source_address": "882280000000000",
            "dcs": 0,
            "endpoint": { "id": 1, "name": "Test device" },
            "organisation": { "id": 42 },
            "multi_part_info": { "partno": 1, "total": 1, "identifier": 0 },
            "pid": 0,
        });
        assert_eq!(received, expected);
        let expected = json!({
            "id": id,
            "final_date": "2026-11-24 12:00:00",
            "submit_date": "2026-11-24 12:00:00",
            "organisation": { "id": 42 },
            "endpoint": { "name": "Test device", "id": 1 },
            "status": { "id": 4, "status": "DELIVERED" },
        });
        assert_eq!(report, expected);
    }

    #[test]
    fn other_events_are_not_for_an_sms_forwarder() {
        let registered = EventContent::Lifecycle(crate::event::Lifecycle::Registered);
        assert_eq!(render_sms(&registered, 42), None);
    }

    fn read(body: Option<Vec<u8>>) -> Value {
        serde_json::from_slice(&body.unwrap()).unwrap()
    }
}
