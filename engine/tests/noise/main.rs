//! Can any input from a peer make a machine panic? For any input, answers are well-formed and
//! deadlines move on.

#![allow(clippy::unwrap_used, clippy::panic)]

mod fixture;
mod inputs;
mod messages;

use engine::action::Mode;
use engine::action::Operation;
use proptest::collection::vec;
use proptest::prelude::proptest;

use fixture::NoiseFixture;
use inputs::{
    AddressSetting, CallerCommand, Input, PATHS, RequestMeaning, RequestShape, ResponseShape,
    ResponseTarget, Sender, exchanging, input, request_shape, response_shape,
};

proptest! {
    #[test]
    fn any_input_gets_a_well_formed_answer_or_none(inputs in vec(input(), 0..60)) {
        for address in [AddressSetting::Known, AddressSetting::Unknown] {
            let mut fixture = NoiseFixture::new(address);
            for input in inputs.clone() {
                fixture.play(input);
            }
        }
    }

    #[test]
    fn any_answer_in_blocks_is_handled(inputs in vec(exchanging(), 0..60)) {
        let mut fixture = NoiseFixture::new(AddressSetting::Known);
        fixture.play(Input::Clear(RequestMeaning::Register, Sender::Home));
        for input in inputs {
            fixture.play(input);
        }
    }

    #[test]
    fn any_notification_is_handled(shapes in vec(response_shape(), 0..60)) {
        let mut fixture = NoiseFixture::new(AddressSetting::Unknown);
        fixture.play(Input::Clear(RequestMeaning::Register, Sender::Home));
        for shape in shapes {
            // Lost observations are requested again.
            for path in PATHS {
                let command = CallerCommand::Operation(Operation::ObserveStart, path);
                fixture.play(Input::Submit(command, Mode::SendNow));
                fixture.play(Input::Clear(RequestMeaning::Agreement, Sender::Home));
            }
            fixture.play(Input::Response(shape));
        }
    }

    #[test]
    fn any_answer_to_passive_reporting_is_handled(shapes in vec(response_shape(), 0..60)) {
        let mut fixture = NoiseFixture::reporting();
        for (turn, shape) in shapes.into_iter().enumerate() {
            // A refusal of the device counts until it registers again.
            let is_anew = turn % 5 == 0;
            let meaning = if is_anew { RequestMeaning::Register } else { RequestMeaning::Update };
            fixture.play(Input::Clear(meaning, Sender::Home));
            let to = ResponseTarget::LastRequest;
            fixture.play(Input::Response(ResponseShape { to, ..shape }));
            fixture.play(Input::Due);
        }
    }
}

proptest! {
    #[test]
    fn any_request_is_published_once_and_before_it_is_acknowledged(
        shapes in vec(request_shape(), 0..60),
    ) {
        let mut fixture = NoiseFixture::new(AddressSetting::Known);
        fixture.play(Input::Clear(RequestMeaning::Register, Sender::Home));
        for shape in shapes {
            let shape = RequestShape { from: Sender::Home, ..shape };
            fixture.play(Input::Request(shape.clone()));
            // Nothing was received in between, so that it counts as a retransmission.
            fixture.repeat(shape.clone());
            fixture.play(Input::RequestInBlocks(shape));
        }
    }
}
