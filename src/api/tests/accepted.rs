//! Does the response to a creation match its golden file?

use engine::action::Mode;
use engine::device::refusal::SubmitRefusal;
use engine::ids::{ActionId, DeviceId};
use engine::supervision::Unserved;

use super::golden;
use crate::api::actions::creating::{AcceptedBody, BulkResultBody};
use crate::api::error::ApiError;

#[test]
fn a_request_for_one_device() {
    golden::check("action_accepted", &AcceptedBody::of(id()));
}

#[test]
fn requests_for_many_devices() {
    let full = SubmitRefusal::QueueFull {
        mode: Mode::SendNow,
        waiting: 11,
        max: 10,
    };
    let too_much = SubmitRefusal::DataFull {
        more: 1_000_000,
        total: 4_200_000,
        max: 4_194_304,
    };
    let answers = [
        ("meter-7", Ok(id())),
        ("meter-8", Err(ApiError::from(Unserved::Unknown))),
        ("meter-9", Err(ApiError::from(SubmitRefusal::NotRegistered))),
        ("meter-10", Err(ApiError::from(full))),
        ("meter-11", Err(ApiError::from(Unserved::Busy))),
        ("meter-12", Err(ApiError::from(SubmitRefusal::NoAddress))),
        ("meter-13", Err(ApiError::from(too_much))),
    ];
    let answers = answers.map(|(device, answer)| (DeviceId::parse(device).unwrap(), answer));
    golden::check("actions_accepted", &BulkResultBody::of(answers.into_iter()));
}

fn id() -> ActionId {
    ActionId::parse("01935c5a-0000-7000-8000-000000000001").unwrap()
}
