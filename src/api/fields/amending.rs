//! How are the fields of an update read? `null` removes a value, and an absent field keeps it.

use std::ops::RangeInclusive;

use engine::directory::amending::FieldAmendment;

use super::{ErrorDetail, FieldFault, Fields};

impl Fields {
    /// An optional string that `null` removes.
    pub(in crate::api) fn amendment<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, W>,
    ) -> FieldAmendment<T> {
        if self.nulls.remove(name) {
            return FieldAmendment::Remove;
        }
        self.optional(name, read)
            .map_or(FieldAmendment::Keep, FieldAmendment::Put)
    }

    /// An optional integer of a range that `null` removes.
    pub(in crate::api) fn number_amendment(
        &mut self,
        name: &str,
        range: RangeInclusive<u32>,
    ) -> FieldAmendment<u32> {
        if self.nulls.remove(name) {
            return FieldAmendment::Remove;
        }
        self.number(name, range)
            .map_or(FieldAmendment::Keep, FieldAmendment::Put)
    }

    /// An optional map of names to strings that `null` removes, one by one or as a whole (RFC
    /// 7396).
    pub(in crate::api) fn merge<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        read: impl FnMut(&str, Option<&str>) -> Result<T, W>,
    ) -> FieldAmendment<Vec<T>> {
        if self.nulls.remove(name) {
            return FieldAmendment::Remove;
        }
        self.optional_texts_by_name(name, read)
            .map_or(FieldAmendment::Keep, FieldAmendment::Put)
    }

    /// An optional object that `null` removes.
    pub(in crate::api) fn object_amendment<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> FieldAmendment<T> {
        if self.nulls.remove(name) {
            return FieldAmendment::Remove;
        }
        let object = self.object(name, read).flatten();
        object.map_or(FieldAmendment::Keep, FieldAmendment::Put)
    }

    /// An optional string that cannot be removed.
    pub(in crate::api) fn replacement<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, W>,
    ) -> Option<T> {
        if self.nulls.remove(name) {
            self.wrong_type(name, "a string; null is not allowed");
            return None;
        }
        self.optional(name, read)
    }

    /// Refuses a read-only property.
    pub(in crate::api) fn read_only(&mut self, name: &str, why: &str) {
        let is_given = self.given.remove(name).is_some();
        if self.nulls.remove(name) || is_given {
            self.faults.push(ErrorDetail::of("READ_ONLY", name, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::fields::label;
    use crate::api::fields::tests::{body, codes_and_fields};

    #[test]
    fn a_value_replaces_null_removes_and_an_absent_field_stays() {
        let mut fields = body(json!({"name": "Attic", "ip": null}));
        assert_eq!(
            fields.amendment("name", label),
            FieldAmendment::Put("Attic".into())
        );
        assert_eq!(fields.amendment("ip", label), FieldAmendment::Remove);
        assert_eq!(fields.amendment("imsi", label), FieldAmendment::Keep);
        assert_eq!(fields.replacement("iccid", label), None);
        assert!(fields.finish(Some(())).is_ok());
    }

    #[test]
    fn a_merge_has_the_values_to_put_and_the_names_to_remove() {
        let read = |name: &str, text: Option<&str>| {
            let text = text.map(str::to_owned);
            (name != "bad")
                .then(|| (name.to_owned(), text))
                .ok_or("must not be bad")
        };
        let mut fields = body(json!({"tags": {"a": "1", "b": null}, "all": null}));
        let changes = vec![
            ("a".to_owned(), Some("1".to_owned())),
            ("b".to_owned(), None),
        ];
        assert_eq!(fields.merge("tags", read), FieldAmendment::Put(changes));
        assert_eq!(fields.merge("all", read), FieldAmendment::Remove);
        assert_eq!(fields.merge("none", read), FieldAmendment::Keep);
        assert!(fields.finish(Some(())).is_ok());
        let mut fields = body(json!({"tags": {"a": 1, "bad": "1"}, "list": []}));
        assert_eq!(fields.merge("tags", read), FieldAmendment::Keep);
        assert_eq!(fields.merge("list", read), FieldAmendment::Keep);
        let failure = fields.finish(Some(())).unwrap_err();
        let expected = [
            ("WRONG_TYPE", "tags.a"),
            ("INVALID_VALUE", "tags.bad"),
            ("WRONG_TYPE", "list"),
        ];
        assert_eq!(codes_and_fields(&failure), expected);
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let mut fields = body(json!({
            "iccid": null, "name": " ", "ip": 7, "deviceId": null, "number": 7, "tint": null,
            "shade": "dark",
        }));
        fields.replacement("iccid", label);
        fields.amendment("name", label);
        fields.amendment("ip", label);
        fields.read_only("deviceId", "cannot be changed");
        fields.read_only("number", "cannot be changed");
        fields.read_only("created", "cannot be changed");
        let failure = fields.finish(Some(())).unwrap_err();
        let expected = [
            ("WRONG_TYPE", "iccid"),
            ("INVALID_VALUE", "name"),
            ("WRONG_TYPE", "ip"),
            ("READ_ONLY", "deviceId"),
            ("READ_ONLY", "number"),
            ("UNKNOWN_PROPERTY", "shade"),
            ("UNKNOWN_PROPERTY", "tint"),
        ];
        assert_eq!(codes_and_fields(&failure), expected);
    }
}
