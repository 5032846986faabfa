//! Is this something a device can be asked? From what a caller wrote to a request.
//!
//! Every fault is found in one go, and each says which part of the request it is about.

use protocol::lwm2m::path::{InvalidPath, Level, Path};

use crate::action::{Lwm2mRequest, Operation};
use crate::limits::ACTION_DATA_BYTES_MAX;

/// What is wrong with a request as it was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RequestFault {
    /// The address is not one.
    #[error(transparent)]
    Address(InvalidPath),
    /// The address names an object or an instance of one, and the operation needs a resource.
    #[error("must address a resource: /object/instance/resource")]
    NoResource,
    /// A resource instance cannot be executed (LwM2M Core 1.2 section 6.3.5).
    #[error("must address a resource, not one of its instances: /object/instance/resource")]
    ResourceInstance,
    /// Whole objects and instances cannot be read by this build.
    #[error("reading a whole object or instance is not supported yet; address a resource")]
    ObjectRead,
    /// A write says nothing to write.
    #[error("is required to write")]
    DataMissing,
    /// A read carries data.
    #[error("cannot be given to read")]
    DataUnwanted,
    /// The data is longer than one datagram carries.
    #[error("must not be longer than {max} bytes")]
    DataTooLong {
        /// The longest that would do.
        max: usize,
    },
}

/// The part of a request that a fault is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// Where the operation is to be done.
    Address,
    /// What is written, or what the execution is given.
    Data,
}

impl RequestFault {
    /// The part of the request that must change.
    pub fn part(self) -> Part {
        match self {
            Self::Address(_) | Self::NoResource | Self::ResourceInstance | Self::ObjectRead => {
                Part::Address
            }
            Self::DataMissing | Self::DataUnwanted | Self::DataTooLong { .. } => Part::Data,
        }
    }
}

impl Lwm2mRequest {
    /// Reads a request; the error holds everything that is wrong with it.
    pub fn parse(
        operation: Operation,
        address: &str,
        data: Option<&str>,
    ) -> Result<Self, Vec<RequestFault>> {
        let path = addressed(operation, address);
        let data = given(operation, data);
        match (path, data) {
            (Ok(path), Ok(data)) => Ok(Self {
                operation,
                path,
                data,
            }),
            (path, data) => Err(path.err().into_iter().chain(data.err()).collect()),
        }
    }
}

fn addressed(operation: Operation, address: &str) -> Result<Path, RequestFault> {
    let path = Path::parse(address).map_err(RequestFault::Address)?;
    match (path.level(), operation) {
        (Level::Object | Level::Instance, Operation::Read) => Err(RequestFault::ObjectRead),
        (Level::Object | Level::Instance, Operation::Write | Operation::Execute) => {
            Err(RequestFault::NoResource)
        }
        (Level::ResourceInstance, Operation::Execute) => Err(RequestFault::ResourceInstance),
        (Level::ResourceInstance, Operation::Read | Operation::Write)
        | (Level::Resource, Operation::Read | Operation::Write | Operation::Execute) => Ok(path),
    }
}

fn given(operation: Operation, data: Option<&str>) -> Result<Option<Box<str>>, RequestFault> {
    match (operation, data) {
        (_, Some(data)) if data.len() > ACTION_DATA_BYTES_MAX => Err(RequestFault::DataTooLong {
            max: ACTION_DATA_BYTES_MAX,
        }),
        (Operation::Write, None) => Err(RequestFault::DataMissing),
        (Operation::Read, Some(_)) => Err(RequestFault::DataUnwanted),
        (Operation::Write | Operation::Execute, Some(data)) => Ok(Some(data.into())),
        (Operation::Read | Operation::Execute, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::{Execute, Read, Write};

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
            (Read, "/3", RequestFault::ObjectRead),
            (Read, "/3/0", RequestFault::ObjectRead),
            (Execute, "/3/0", RequestFault::NoResource),
            (Execute, "/3/0/4/0", RequestFault::ResourceInstance),
            (
                Read,
                "3/0/0",
                RequestFault::Address(InvalidPath::NoLeadingSlash),
            ),
            (
                Read,
                "/3/0/65536",
                RequestFault::Address(InvalidPath::InvalidSegment),
            ),
            (
                Read,
                "/3/0/0/0/0",
                RequestFault::Address(InvalidPath::TooDeep),
            ),
        ];
        for (operation, address, fault) in cases {
            let refused = Lwm2mRequest::parse(operation, address, None);
            assert_eq!(refused, Err(vec![fault]), "{operation:?} {address}");
            assert_eq!(fault.part(), Part::Address);
        }
    }

    #[test]
    fn data_that_does_not_suit_the_operation_is_refused() {
        let long = "x".repeat(ACTION_DATA_BYTES_MAX + 1);
        let too_long = RequestFault::DataTooLong {
            max: ACTION_DATA_BYTES_MAX,
        };
        let cases = [
            (Write, None, RequestFault::DataMissing),
            (Read, Some(""), RequestFault::DataUnwanted),
            (Write, Some(long.as_str()), too_long),
        ];
        for (operation, data, fault) in cases {
            assert_eq!(
                Lwm2mRequest::parse(operation, "/3/0/0", data),
                Err(vec![fault])
            );
            assert_eq!(fault.part(), Part::Data);
        }
    }

    #[test]
    fn every_fault_is_found_at_once() {
        let both = vec![RequestFault::NoResource, RequestFault::DataMissing];
        assert_eq!(Lwm2mRequest::parse(Write, "/3", None), Err(both));
    }
}
