//! Is this a valid LwM2M operation? Parses what a caller wrote (seed 4.2).

use protocol::lwm2m::path::{InvalidPath, Level, Path};

use super::RawField;
use crate::action::{Lwm2mRequest, Operation};

/// A fault in a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Lwm2mFault {
    /// The address is invalid.
    #[error(transparent)]
    Address(InvalidPath),
    /// The address names an object or an object instance, but the operation needs a resource.
    #[error("must address a resource: /object/instance/resource")]
    NoResource,
    /// A resource instance cannot be executed (LwM2M Core 1.2 section 6.3.5).
    #[error("must address a resource, not one of its instances: /object/instance/resource")]
    ResourceInstance,
    /// A write has no data.
    #[error("is required for the action write")]
    DataMissing,
    /// The operation takes no data.
    #[error("is only allowed for the actions write and execute")]
    DataUnwanted,
    /// The data is too long.
    #[error("must not be longer than {max} bytes")]
    DataTooLong {
        /// The longest allowed.
        max: usize,
    },
}

/// The field that a fault is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lwm2mField {
    /// The path of the operation.
    Address,
    /// The value to write, or the arguments to execute with.
    Data,
}

impl Lwm2mFault {
    /// The field that must change.
    pub fn part(self) -> Lwm2mField {
        match self {
            Self::Address(_) | Self::NoResource | Self::ResourceInstance => Lwm2mField::Address,
            Self::DataMissing | Self::DataUnwanted | Self::DataTooLong { .. } => Lwm2mField::Data,
        }
    }
}

/// A request as a caller wrote it. Fields that are missing or not text are already reported; the
/// others are checked all the same.
#[derive(Clone, Copy, Debug)]
pub struct Lwm2mDraft<'a> {
    /// The operation.
    pub operation: Option<Operation>,
    /// The address.
    pub address: Option<&'a str>,
    /// The value to write, or the arguments to execute with.
    pub data: RawField<&'a str>,
}

impl Lwm2mDraft<'_> {
    /// Parses the request; the error has every fault of the fields that are there. `None` if a
    /// field is missing or unreadable. The data has at most `data_max` bytes.
    pub fn read(self, data_max: usize) -> Result<Option<Lwm2mRequest>, Vec<Lwm2mFault>> {
        let path = self.path();
        let data = self.fitting_data(data_max);
        match (path, data) {
            (Ok(path), Ok(data)) => Ok(self.request(path, data)),
            (path, data) => Err(path.err().into_iter().chain(data.err()).collect()),
        }
    }

    fn request(&self, path: Option<Path>, data: Option<Box<str>>) -> Option<Lwm2mRequest> {
        match self.data {
            RawField::Unreadable => None,
            RawField::Nothing | RawField::Value(_) => Some(Lwm2mRequest {
                operation: self.operation?,
                path: path?,
                data,
            }),
        }
    }

    fn path(&self) -> Result<Option<Path>, Lwm2mFault> {
        let path = self.address.map(Path::parse).transpose();
        let path = path.map_err(Lwm2mFault::Address)?;
        match path.zip(self.operation) {
            Some((path, operation)) => addressed(operation, path).map(Some),
            None => Ok(path),
        }
    }

    fn fitting_data(&self, max: usize) -> Result<Option<Box<str>>, Lwm2mFault> {
        match self.data {
            RawField::Value(data) if data.len() > max => Err(Lwm2mFault::DataTooLong { max }),
            RawField::Value(_) if !self.may_have_data() => Err(Lwm2mFault::DataUnwanted),
            RawField::Nothing if self.operation == Some(Operation::Write) => {
                Err(Lwm2mFault::DataMissing)
            }
            RawField::Value(data) => Ok(Some(data.into())),
            RawField::Nothing | RawField::Unreadable => Ok(None),
        }
    }

    fn may_have_data(&self) -> bool {
        match self.operation {
            None | Some(Operation::Write | Operation::Execute) => true,
            Some(Operation::Read | Operation::ObserveStart | Operation::ObserveEnd) => false,
        }
    }
}

impl Lwm2mRequest {
    /// Parses a request that has every field, with data of any length; the error has every fault.
    pub fn parse(
        operation: Operation,
        address: &str,
        data: Option<&str>,
    ) -> Result<Self, Vec<Lwm2mFault>> {
        let draft = Lwm2mDraft {
            operation: Some(operation),
            address: Some(address),
            data: data.map_or(RawField::Nothing, RawField::Value),
        };
        draft
            .read(usize::MAX)
            .map(|request| request.expect("every part is there and readable"))
    }
}

fn addressed(operation: Operation, path: Path) -> Result<Path, Lwm2mFault> {
    match (path.level(), operation) {
        (Level::Object | Level::Instance, Operation::Write | Operation::Execute) => {
            Err(Lwm2mFault::NoResource)
        }
        (Level::ResourceInstance, Operation::Execute) => Err(Lwm2mFault::ResourceInstance),
        (
            Level::Object | Level::Instance | Level::Resource | Level::ResourceInstance,
            Operation::Read | Operation::ObserveStart | Operation::ObserveEnd,
        )
        | (Level::Resource, Operation::Write | Operation::Execute)
        | (Level::ResourceInstance, Operation::Write) => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::{Execute, ObserveEnd, ObserveStart, Read, Write};

    #[test]
    fn a_resource_and_one_of_its_instances_can_be_read_and_written() {
        for address in ["/3/0/0", "/3/0/6/1"] {
            let path = Path::parse(address).unwrap();
            let read = Lwm2mRequest {
                operation: Read,
                path,
                data: None,
            };
            assert_eq!(Lwm2mRequest::parse(Read, address, None), Ok(read));
            let write = Lwm2mRequest {
                operation: Write,
                path,
                data: Some("7".into()),
            };
            assert_eq!(Lwm2mRequest::parse(Write, address, Some("7")), Ok(write));
        }
    }

    #[test]
    fn anything_can_be_read_and_observed() {
        for operation in [Read, ObserveStart, ObserveEnd] {
            for address in ["/3", "/3/0", "/3/0/0", "/3/0/6/1"] {
                let path = Path::parse(address).unwrap();
                let whole = Lwm2mRequest {
                    operation,
                    path,
                    data: None,
                };
                assert_eq!(Lwm2mRequest::parse(operation, address, None), Ok(whole));
            }
        }
    }

    #[test]
    fn an_execution_may_have_arguments_and_needs_none() {
        let path = Path::resource(3, 0, 4);
        let bare = Lwm2mRequest {
            operation: Execute,
            path,
            data: None,
        };
        assert_eq!(Lwm2mRequest::parse(Execute, "/3/0/4", None), Ok(bare));
        let with = Lwm2mRequest {
            operation: Execute,
            path,
            data: Some("0='1'".into()),
        };
        assert_eq!(
            Lwm2mRequest::parse(Execute, "/3/0/4", Some("0='1'")),
            Ok(with)
        );
    }

    #[test]
    fn an_address_that_does_not_suit_the_operation_is_refused() {
        let cases = [
            (Execute, "/3/0", Lwm2mFault::NoResource),
            (Execute, "/3/0/4/0", Lwm2mFault::ResourceInstance),
            (
                Read,
                "3/0/0",
                Lwm2mFault::Address(InvalidPath::NoLeadingSlash),
            ),
            (
                Read,
                "/3/0/65536",
                Lwm2mFault::Address(InvalidPath::InvalidSegment),
            ),
            (
                Read,
                "/3/0/9/",
                Lwm2mFault::Address(InvalidPath::TrailingSlash),
            ),
            (
                Read,
                "/3/0/0/0/0",
                Lwm2mFault::Address(InvalidPath::TooDeep),
            ),
        ];
        for (operation, address, fault) in cases {
            let refused = Lwm2mRequest::parse(operation, address, None);
            assert_eq!(refused, Err(vec![fault]), "{operation:?} {address}");
            assert_eq!(fault.part(), Lwm2mField::Address);
        }
    }

    #[test]
    fn data_that_does_not_suit_the_operation_is_refused() {
        let cases = [
            (Write, None, Lwm2mFault::DataMissing),
            (Read, Some(""), Lwm2mFault::DataUnwanted),
            (ObserveStart, Some("7"), Lwm2mFault::DataUnwanted),
            (ObserveEnd, Some("7"), Lwm2mFault::DataUnwanted),
        ];
        for (operation, data, fault) in cases {
            assert_eq!(
                Lwm2mRequest::parse(operation, "/3/0/0", data),
                Err(vec![fault])
            );
            assert_eq!(fault.part(), Lwm2mField::Data);
        }
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let both = vec![Lwm2mFault::NoResource, Lwm2mFault::DataMissing];
        assert_eq!(Lwm2mRequest::parse(Write, "/3", None), Err(both));
    }

    #[test]
    fn a_field_is_checked_even_if_others_are_missing() {
        let no_path = Lwm2mFault::Address(InvalidPath::NoLeadingSlash);
        let too_long = Lwm2mFault::DataTooLong { max: 3 };
        let nothing = Lwm2mDraft {
            operation: None,
            address: None,
            data: RawField::Nothing,
        };
        let cases = [
            (nothing, vec![]),
            (
                Lwm2mDraft {
                    address: Some("3"),
                    data: RawField::Value("long"),
                    ..nothing
                },
                vec![no_path, too_long],
            ),
            (
                Lwm2mDraft {
                    operation: Some(Write),
                    ..nothing
                },
                vec![Lwm2mFault::DataMissing],
            ),
            (
                Lwm2mDraft {
                    operation: Some(Execute),
                    address: Some("/3/0/4/0"),
                    data: RawField::Unreadable,
                },
                vec![Lwm2mFault::ResourceInstance],
            ),
            (
                Lwm2mDraft {
                    operation: Some(Write),
                    address: Some("/3/0/0"),
                    data: RawField::Unreadable,
                },
                vec![],
            ),
        ];
        for (draft, faults) in cases {
            let expected = match faults.is_empty() {
                true => Ok(None),
                false => Err(faults),
            };
            assert_eq!(draft.read(3), expected, "{draft:?}");
        }
    }
}
