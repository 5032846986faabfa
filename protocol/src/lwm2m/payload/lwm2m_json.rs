//! How are values encoded in the JSON of LwM2M 1.0? (LwM2M 1.0 section 6.4.4,
//! application/vnd.oma.lwm2m+json)
//!
//! An object has the entries, the prefix of all their names, and the base of all their times:
//!
//! ```text
//! {"bn":"/3/0/","bt":1795257412,"e":[{"n":"9","v":95,"t":-5},{"n":"6/0","v":1}]}
//! ```

#[cfg(test)]
mod tests;

use super::json::{self, JsonToken};
use super::samples::{MalformedSamples, ReadSamples, Samples};
use super::scalar::{Number, Scalar};
use super::senml::measured_at;
use super::{Measured, Model, Reading, Scope};
use crate::base64_text;
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};

const BASE_NAME: &str = "bn";
const BASE_TIME: &str = "bt";
const ENTRIES: &str = "e";
const NAME: &str = "n";
const TIME: &str = "t";
const NUMBER: &str = "v";
const TEXT: &str = "sv";
const BOOLEAN: &str = "bv";
const LINK: &str = "ov";

/// Reads the values of a payload. A name without a base name is relative to the requested path.
pub(super) fn decode(
    scope: Scope,
    payload: &[u8],
    model: &dyn Model,
) -> Result<ReadSamples, MalformedSamples> {
    let JsonToken::Object(root) = json::parse(payload)? else {
        return Err(MalformedSamples::Json);
    };
    let Some(JsonToken::List(entries)) = field(&root, ENTRIES) else {
        return Err(MalformedSamples::Json);
    };
    let base = Base::of(&root, scope).ok_or(MalformedSamples::Json)?;
    let mut samples = Samples::new(scope, model);
    for (record, entry) in (1..).zip(entries) {
        let fields = fields_of(entry, record);
        let path = fields.and_then(|fields| base.path_of(fields, record));
        let value_of = |path| {
            let scalar = scalar_of(fields?, model.type_of(path), record)?;
            Ok((path, scalar, base.time_of(fields?, record)?))
        };
        match path.and_then(value_of) {
            Ok((path, scalar, measured)) => samples.add(path, scalar, measured)?,
            Err(reason) => samples.add_unreadable(path.ok(), reason)?,
        }
    }
    Ok(samples.finish())
}

/// Writes the values within the scope; values at other paths, or that belong to no resource, are
/// left out. JSON cannot represent NaN and infinity: the path of such a value is the error.
pub(super) fn encode(scope: Scope, values: &Reading) -> Result<Vec<u8>, Path> {
    let within = values
        .iter()
        .filter(|(at, _)| scope.contains(**at) && at.to_resource().is_some());
    let requested = match scope {
        Scope::All => None,
        Scope::Within(path) => Some(path),
    };
    let is_alone = within.clone().all(|(at, _)| Some(*at) == requested);
    let depth = requested.map_or(0, |path| path.segments().len());
    let entries = within.map(|(at, value)| entry(depth, *at, value).ok_or(*at));
    let entries: Vec<String> = entries.collect::<Result<_, _>>()?;
    let mut base_name = requested.map_or(String::new(), |path| path.to_string());
    if !is_alone || requested.is_none() {
        base_name.push('/');
    }
    let root = [
        json::field_text(BASE_NAME, &json::string_text(&base_name)),
        json::field_text(ENTRIES, &format!("[{}]", entries.join(","))),
    ];
    Ok(json::object_text(&root).into_bytes())
}

/// A field of an object.
type Field = (String, JsonToken);

/// What applies to all entries of a payload.
struct Base<'a> {
    /// The base name, unless it is empty.
    name: Option<&'a str>,
    time: Option<Number>,
    requested: Option<Path>,
}

impl<'a> Base<'a> {
    fn of(root: &'a [Field], scope: Scope) -> Option<Self> {
        let name = match field(root, BASE_NAME) {
            None => None,
            Some(name) => Some(text_of(name)?).filter(|name| !name.is_empty()),
        };
        let time = match field(root, BASE_TIME) {
            None => None,
            Some(time) => Some(number_of(time)?),
        };
        let requested = match scope {
            Scope::All => None,
            Scope::Within(path) => Some(path),
        };
        Some(Self {
            name,
            time,
            requested,
        })
    }

    fn path_of(&self, entry: &[Field], record: usize) -> Result<Path, MalformedSamples> {
        let name = match field(entry, NAME) {
            None => "",
            Some(name) => text_of(name).ok_or(MalformedSamples::Field(record))?,
        };
        let path = match (self.name, self.requested) {
            (Some(base), _) => joined(segments(base), name),
            (None, None) => joined(segments(""), name),
            (None, Some(requested)) => {
                let above = requested.segments().map(|segment| segment.to_string());
                let whole = Path::parse(name)
                    .ok()
                    .filter(|path| requested.contains(*path));
                whole.or_else(|| joined(above, name))
            }
        };
        let path = path.filter(|path| path.to_resource().is_some());
        path.ok_or(MalformedSamples::Name(record))
    }

    fn time_of(
        &self,
        entry: &[Field],
        record: usize,
    ) -> Result<Option<Measured>, MalformedSamples> {
        let time = match field(entry, TIME) {
            None => None,
            Some(time) => Some(number_of(time).ok_or(MalformedSamples::Field(record))?),
        };
        let (Some(from), after) = (self.time.or(time), self.time.and(time)) else {
            return Ok(None);
        };
        let dated = |base: Number| base.to_billionths().is_some_and(|nanos| nanos > 0);
        let is_dated = self.time.is_some_and(dated);
        let sum = from.plus(after.unwrap_or(Number::Integer(0)));
        let measured = sum.and_then(|sum| measured(sum, is_dated));
        measured.map(Some).ok_or(MalformedSamples::Time(record))
    }
}

/// Returns the time this many seconds after 1970; after the receipt, if the number is too small for
/// a date and the payload does not mark it as one.
fn measured(seconds: Number, is_dated: bool) -> Option<Measured> {
    let measured = measured_at(seconds.to_billionths()?)?;
    Some(match measured {
        Measured::Relative(ms) if is_dated => Measured::Absolute(ms),
        Measured::Absolute(_) | Measured::Relative(_) => measured,
    })
}

/// Appends a name to a base name. Devices place slashes differently, and none splits one number in
/// two.
fn joined<S: AsRef<str>>(base: impl IntoIterator<Item = S>, name: &str) -> Option<Path> {
    let base: Vec<S> = base.into_iter().collect();
    let all = base.iter().map(AsRef::as_ref).chain(segments(name));
    Path::from_segments(all).ok()
}

fn segments(name: &str) -> impl Iterator<Item = &str> {
    name.split('/').filter(|segment| !segment.is_empty())
}

/// Returns the one value of an entry. JSON has bytes as a text: the type distinguishes them.
fn scalar_of(
    entry: &[Field],
    data_type: Option<DataType>,
    record: usize,
) -> Result<Scalar, MalformedSamples> {
    let names = [NUMBER, TEXT, BOOLEAN, LINK];
    let mut given = names
        .into_iter()
        .filter_map(|name| Some((name, field(entry, name)?)));
    let (name, value) = given.next().ok_or(MalformedSamples::NoValue(record))?;
    if given.next().is_some() {
        return Err(MalformedSamples::SeveralValues(record));
    }
    let is_opaque = data_type == Some(DataType::Opaque);
    let scalar = match (name, value) {
        (NUMBER, JsonToken::Scalar(scalar @ Scalar::Number(_)))
        | (BOOLEAN, JsonToken::Scalar(scalar @ Scalar::Boolean(_))) => Some(scalar.clone()),
        (TEXT, JsonToken::Scalar(Scalar::Text(text))) if is_opaque => bytes_of(text),
        (TEXT, JsonToken::Scalar(scalar @ Scalar::Text(_))) => Some(scalar.clone()),
        (LINK, JsonToken::Scalar(Scalar::Text(text))) => Some(Scalar::Link(text.clone())),
        (_, _) => None,
    };
    scalar.ok_or(MalformedSamples::Field(record))
}

/// Returns the fields of an entry, each of which is there once.
fn fields_of(entry: &JsonToken, record: usize) -> Result<&[Field], MalformedSamples> {
    match entry {
        JsonToken::Object(fields) if repeats_a_field(fields) => {
            Err(MalformedSamples::Repeated(record))
        }
        JsonToken::Object(fields) => Ok(fields),
        JsonToken::Null | JsonToken::List(_) | JsonToken::Scalar(_) => Err(MalformedSamples::Json),
    }
}

fn field<'a>(fields: &'a [Field], name: &str) -> Option<&'a JsonToken> {
    let mut found = fields.iter().filter(|(field, _)| field == name);
    found.next().map(|(_, token)| token)
}

/// Returns whether a field is repeated, so that its value is ambiguous.
fn repeats_a_field(fields: &[Field]) -> bool {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let mut pairs = names.iter().zip(names.iter().skip(1));
    pairs.any(|(one, next)| one == next)
}

fn text_of(token: &JsonToken) -> Option<&str> {
    match token {
        JsonToken::Scalar(Scalar::Text(text)) => Some(text),
        JsonToken::Scalar(_) | JsonToken::Null | JsonToken::List(_) | JsonToken::Object(_) => None,
    }
}

fn number_of(token: &JsonToken) -> Option<Number> {
    match token {
        JsonToken::Scalar(Scalar::Number(number)) => Some(*number),
        JsonToken::Scalar(_) | JsonToken::Null | JsonToken::List(_) | JsonToken::Object(_) => None,
    }
}

/// Reads base64, padded in full or not at all.
fn bytes_of(text: &str) -> Option<Scalar> {
    base64_text::decode(text).ok().map(Scalar::Bytes)
}

/// Writes a value with the part of its name after the base name, which has `depth` numbers.
fn entry(depth: usize, path: Path, value: &Value) -> Option<String> {
    let (field, value) = match value {
        Value::Boolean(value) => (BOOLEAN, value.to_string()),
        Value::CoreLink(text) | Value::String(text) => (TEXT, json::string_text(text)),
        Value::Float(number) if !number.is_finite() => return None,
        Value::Float(number) => (NUMBER, json::number_text(*number)),
        Value::Integer(number) | Value::Time(number) => (NUMBER, number.to_string()),
        Value::ObjectLink(_) => (LINK, json::string_text(&value.to_text())),
        Value::Opaque(_) => (TEXT, json::string_text(&value.to_text())),
        Value::UnsignedInteger(number) => (NUMBER, number.to_string()),
    };
    let below: Vec<String> = path
        .segments()
        .skip(depth)
        .map(|segment| segment.to_string())
        .collect();
    let mut fields = Vec::new();
    if !below.is_empty() {
        fields.push(json::field_text(NAME, &json::string_text(&below.join("/"))));
    }
    fields.push(json::field_text(field, &value));
    Some(json::object_text(&fields))
}
