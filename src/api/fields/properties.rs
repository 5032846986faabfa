//! Which properties does a JSON object have? All of them, including duplicates (RFC 8259 section 4
//! leaves their meaning open).

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;

use crate::api::error::ApiError;

/// The properties of an object in their order.
pub(in crate::api) struct Properties(pub(in crate::api) Vec<(String, Value)>);

/// The failure for a body that is not a JSON object.
pub(in crate::api) fn unread(error: serde_json::Error) -> ApiError {
    match error.classify() {
        Category::Data => ApiError::malformed("the body must be a JSON object"),
        Category::Io | Category::Syntax | Category::Eof => {
            ApiError::malformed(format!("the body is not valid JSON: {error}"))
        }
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Properties;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
        let mut properties = Vec::new();
        while let Some(property) = map.next_entry()? {
            properties.push(property);
        }
        Ok(Properties(properties))
    }
}
