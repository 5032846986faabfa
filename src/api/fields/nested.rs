//! How are nested properties read? Part by part, and each fault names its part: `headers.X-Key`,
//! `eventTypes[1].type`.

use serde_json::Value;

use super::{ErrorDetail, FieldFault, Fields, Origin};

impl Fields {
    /// An optional object, read like the fields of a body.
    pub(in crate::api) fn object<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let value = self.take(name)?;
        self.nested(name, value, read)
    }

    /// A value that is an object, read like the fields of a body.
    fn nested<T>(
        &mut self,
        place: &str,
        value: Value,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let Value::Object(properties) = value else {
            self.wrong_type(place, "an object");
            return None;
        };
        let mut fields = Self::of(Origin::Body);
        for (property, value) in properties {
            if value.is_null() {
                fields.nulls.insert(property);
            } else {
                fields.given.insert(property, value);
            }
        }
        let read = read(&mut fields);
        fields.refuse_unknown();
        let of_part = |fault: ErrorDetail| ErrorDetail {
            field: fault.field.map(|field| format!("{place}.{field}")),
            ..fault
        };
        self.faults.extend(fields.faults.into_iter().map(of_part));
        Some(read)
    }

    /// An optional boolean; in a query it is a word.
    pub(in crate::api) fn truth(&mut self, name: &str) -> Option<bool> {
        if self.origin == Origin::Query {
            return self.optional(name, |text| {
                text.parse().map_err(|_| "must be true or false")
            });
        }
        let given = self.take(name)?;
        let truth = given.as_bool();
        if truth.is_none() {
            self.wrong_type(name, "true or false");
        }
        truth
    }

    /// An optional map of names to strings.
    pub(in crate::api) fn texts_by_name<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        mut read: impl FnMut(&str, &str) -> Result<T, W>,
    ) -> Option<Vec<T>> {
        self.parts_by_name(name, |key, value| {
            let text = value
                .as_str()
                .ok_or_else(|| FieldFault::wrong_type("a string"))?;
            read(key, text).map_err(Into::into)
        })
    }

    /// An optional map of names to strings, in which `null` stands for the removal of a name.
    pub(super) fn optional_texts_by_name<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        mut read: impl FnMut(&str, Option<&str>) -> Result<T, W>,
    ) -> Option<Vec<T>> {
        self.parts_by_name(name, |key, value| {
            let text = value.as_str();
            if text.is_none() && !value.is_null() {
                return Err(FieldFault::wrong_type("a string or null"));
            }
            read(key, text).map_err(Into::into)
        })
    }

    /// An optional list of objects, each read like the fields of a body.
    pub(in crate::api) fn objects<T>(
        &mut self,
        name: &str,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Value::Array(items) = self.take(name)? else {
            self.wrong_type(name, "an array of objects");
            return None;
        };
        let read = items.into_iter().enumerate().map(|(place, item)| {
            let place = format!("{name}[{place}]");
            self.nested(&place, item, &mut read).flatten()
        });
        // Every item is read, even after a fault.
        read.collect::<Vec<_>>().into_iter().collect()
    }

    /// Refuses `null` for properties that cannot be removed.
    pub(in crate::api) fn never_removed(&mut self, names: &[&str]) {
        for name in names {
            if self.nulls.remove(*name) {
                self.wrong_type(name, "a value or absent; null is not allowed");
            }
        }
    }

    /// An optional map of names to values of any type.
    pub(in crate::api) fn values_by_name<T>(
        &mut self,
        name: &str,
        read: impl FnMut(&str, &Value) -> Result<T, FieldFault>,
    ) -> Option<Vec<T>> {
        self.parts_by_name(name, read)
    }

    fn parts_by_name<T>(
        &mut self,
        name: &str,
        mut read: impl FnMut(&str, &Value) -> Result<T, FieldFault>,
    ) -> Option<Vec<T>> {
        let Value::Object(properties) = self.take(name)? else {
            self.wrong_type(name, "an object of strings");
            return None;
        };
        let read = properties.iter().map(|(key, value)| {
            let read = read(key, value);
            self.part(&format!("{name}.{key}"), read)
        });
        // Every part is read, even after a fault.
        read.collect::<Vec<_>>().into_iter().collect()
    }

    fn part<T>(&mut self, place: &str, read: Result<T, FieldFault>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.fault(place, wrong);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::api::fields::label;
    use crate::api::fields::tests::{body, codes_and_fields};

    #[test]
    fn valid_parts_are_parsed_one_by_one() {
        let mut fields = body(json!({
            "on": true, "headers": {"b": "2", "a": "1"}, "types": [{"type": "x"}, {"type": "y"}],
        }));
        assert_eq!(fields.truth("on"), Some(true));
        assert_eq!(fields.truth("off"), None);
        let pair = |name: &str, value: &str| Ok::<_, String>(format!("{name}={value}"));
        let pairs = fields.texts_by_name("headers", pair).unwrap();
        assert_eq!(pairs, ["a=1", "b=2"]);
        let types = fields
            .objects("types", |it| it.required("type", label))
            .unwrap();
        assert_eq!(types, ["x".into(), "y".into()]);
        assert_eq!(
            fields.objects("others", |it| it.required("type", label)),
            None
        );
        assert!(fields.finish(Some(())).is_ok());
    }

    #[test]
    fn every_fault_names_its_part() {
        let mut fields = body(json!({
            "on": "true", "headers": {"a": 1, "b": " ", "c": "x"}, "off": null,
            "types": [{"type": "x", "kind": "y"}, {}, "z", {"type": 1}, {"type": null}],
        }));
        assert_eq!(fields.truth("on"), None);
        let read = |_: &str, value: &str| label(value);
        assert_eq!(fields.texts_by_name("headers", read), None);
        assert_eq!(
            fields.objects("types", |it| it.required("type", label)),
            None
        );
        fields.never_removed(&["off", "on"]);
        let failure = fields.finish(Some(())).unwrap_err();
        let expected = [
            ("WRONG_TYPE", "on"),
            ("WRONG_TYPE", "headers.a"),
            ("INVALID_VALUE", "headers.b"),
            ("UNKNOWN_PROPERTY", "types[0].kind"),
            ("REQUIRED", "types[1].type"),
            ("WRONG_TYPE", "types[2]"),
            ("WRONG_TYPE", "types[3].type"),
            ("REQUIRED", "types[4].type"),
            ("WRONG_TYPE", "off"),
        ];
        assert_eq!(codes_and_fields(&failure), expected);
    }

    #[test]
    fn a_value_of_another_type_is_a_fault_of_the_whole() {
        let mut fields = body(json!({"headers": [], "types": {}}));
        let pair = |_: &str, _: &str| Ok::<_, String>(());
        assert_eq!(fields.texts_by_name("headers", pair), None);
        assert_eq!(
            fields.objects("types", |it| it.required("type", label)),
            None
        );
        let failure = fields.finish(Some(())).unwrap_err();
        let codes: Vec<_> = failure.faults().iter().map(|fault| fault.code).collect();
        assert_eq!(codes, ["WRONG_TYPE", "WRONG_TYPE"]);
    }
}
