//! Does the response with the activity of a customer match its golden file?

use engine::moment::Timestamp;
use engine::query::activity::ActivityMinute;

use super::golden;
use crate::api::activity::ActivityBody;

#[test]
fn the_activity_of_two_minutes() {
    let minute = |place: i64, events, requests| ActivityMinute {
        begun_at: Timestamp::from_ms(1_795_780_800_000).plus_s(place * 60),
        events,
        requests,
    };
    let minutes = [minute(0, 1_200, 12), minute(1, 0, 0)];
    golden::check("activity", &ActivityBody::of(&minutes));
}
