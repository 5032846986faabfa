//! Which values do the settings have that the documentation names? A description, and the guide,
//! writes `{{name}}` for the value of a setting.

use super::node::Node;
use crate::config::Config;

/// Values of settings, by the names that descriptions use.
pub(in crate::api) struct ShownSettings(Vec<ShownSetting>);

struct ShownSetting {
    placeholder: String,
    number: u64,
    text: String,
}

impl ShownSettings {
    /// The values of this configuration.
    pub(in crate::api) fn of(config: &Config) -> Self {
        let udp_bytes = config.udp_payload_bytes_max;
        let numbers = [
            ("action_data_bytes_max", config.action_data_bytes_max),
            ("bulk_devices_max", config.bulk_devices_max as usize),
            ("coap_answer_bytes_max", config.coap_answer_bytes_max),
            ("coap_port", config.coap.port().into()),
            ("event_streams_max", config.event_streams_max as usize),
            ("job_devices_max", config.job_devices_max as usize),
            ("jobs_running_max", config.jobs_running_max as usize),
            ("last_values_max", config.last_values_max as usize),
            ("passive_objects_max", config.passive_objects_max),
            ("rate_limit", config.rate_limit as usize),
            ("schedule_every_min_s", config.schedule_every_min_s as usize),
            ("scheduled_max", config.scheduled_max as usize),
            ("schedules_max", config.schedules_max as usize),
            ("sms_open_max", config.sms_open_max as usize),
            ("wake_up_sms_max", config.wake_up_sms_max as usize),
            ("udp_payload_base64_max", udp_bytes.div_ceil(3) * 4),
            ("udp_payload_bytes_max", udp_bytes),
            ("waiting_max", config.waiting_max as usize),
        ];
        let numbers = numbers.map(|(name, number)| {
            let text = match name.ends_with("_port") {
                true => number.to_string(),
                false => grouped(number),
            };
            ShownSetting::new(name, number as u64, text)
        });
        let days = |days: u32| u64::from(days) * 86_400;
        let durations = [
            ("action_expiry_s", config.action_expiry_s.into()),
            ("action_retention_days", days(config.action_retention_days)),
            ("awake_window_ms", u64::from(config.awake_window_ms) / 1_000),
            (
                "dead_letter_retention_days",
                days(config.dead_letter_retention_days),
            ),
            (
                "event_stream_heartbeat_ms",
                u64::from(config.event_stream_heartbeat_ms) / 1_000,
            ),
            (
                "history_retention_days",
                days(config.history_retention_days),
            ),
            (
                "idempotency_retention_h",
                u64::from(config.idempotency_retention_h) * 3_600,
            ),
            ("log_retention_days", days(config.log_retention_days)),
            ("sms_retention_days", days(config.sms_retention_days)),
            ("sms_validity_min", u64::from(config.sms_validity_min) * 60),
            ("token_lifetime_s", config.token_lifetime_s.into()),
        ];
        let durations = durations.map(|(name, s)| ShownSetting::new(name, s, duration(s)));
        let udp = config.udp.port();
        let udp = ShownSetting::new("udp_port", udp.into(), udp.to_string());
        Self(numbers.into_iter().chain(durations).chain([udp]).collect())
    }

    /// The same text with the values.
    pub(in crate::api) fn fill(&self, text: &str) -> String {
        let fill = |text: String, it: &ShownSetting| text.replace(&it.placeholder, &it.text);
        self.0.iter().fold(text.to_owned(), fill)
    }

    /// The same document with the values: a number where a placeholder is the whole value.
    pub(super) fn fill_node(&self, node: Node) -> Node {
        match node {
            Node::Leaf(value) => match value.as_str().filter(|text| text.contains("{{")) {
                Some(text) => match self.0.iter().find(|it| it.placeholder == text) {
                    Some(whole) => whole.number.into(),
                    None => self.fill(text).into(),
                },
                None => Node::Leaf(value),
            },
            Node::List(items) => {
                Node::List(items.into_iter().map(|it| self.fill_node(it)).collect())
            }
            Node::Object(properties) => {
                let filled = properties.into_iter();
                Node::Object(
                    filled
                        .map(|(name, it)| (name, self.fill_node(it)))
                        .collect(),
                )
            }
        }
    }
}

impl ShownSetting {
    fn new(name: &str, number: u64, text: String) -> Self {
        Self {
            placeholder: format!("{{{{{name}}}}}"),
            number,
            text,
        }
    }
}

/// A time in the largest unit that leaves no remainder.
fn duration(s: u64) -> String {
    let (count, unit) = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ]
    .into_iter()
    .find(|(unit_s, _)| s >= *unit_s && s.is_multiple_of(*unit_s))
    .map_or((s, "second"), |(unit_s, unit)| (s / unit_s, unit));
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// A number with a comma at each thousand.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_the_values_of_the_settings() {
        let config = Config {
            action_expiry_s: 90,
            bulk_devices_max: 250,
            action_data_bytes_max: 1_500_000,
            ..Config::of_defaults()
        };
        let shown = ShownSettings::of(&config);
        let node = Node::object()
            .with("maxItems", "{{bulk_devices_max}}")
            .with(
                "text",
                vec!["after {{action_expiry_s}}, {{action_data_bytes_max}}"],
            );
        let expected = Node::object()
            .with("maxItems", 250_u64)
            .with("text", vec!["after 90 seconds, 1,500,000"]);
        assert_eq!(shown.fill_node(node), expected);
    }

    #[test]
    fn a_time_has_the_largest_unit_without_a_remainder() {
        let cases = [
            (0, "0 seconds"),
            (1, "1 second"),
            (93, "93 seconds"),
            (120, "2 minutes"),
            (3_600, "1 hour"),
            (172_800, "2 days"),
        ];
        for (s, text) in cases {
            assert_eq!(duration(s), text);
        }
    }
}
