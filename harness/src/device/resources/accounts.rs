//! Which accounts does the device have, and how does a bootstrap replace them? (LwM2M Core 1.2
//! sections 6.1.7 and 6.3)

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::bootstrap::{SECURITY_OBJECT, SERVER_OBJECT};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::{Entry, Resources};
use crate::device::outcome::ResponseContent;
use crate::device::resource::Resource;

/// The objects that a bootstrap deletes: accounts, servers, access control.
const DELETED: [u16; 3] = [SECURITY_OBJECT, SERVER_OBJECT, 2];

impl Resources {
    /// Whether there is an account of a server, and its server object.
    pub(in crate::device) fn has_account(&self) -> bool {
        let servers: Vec<&Value> = self.values_of(SERVER_OBJECT, 0).map(|it| it.1).collect();
        let mut ids = self.values_of(SECURITY_OBJECT, 10);
        ids.any(|(instance, id)| !self.is_of_bootstrap(instance) && servers.contains(&id))
    }

    /// Deletes all accounts but that of the bootstrap server. What can be executed belongs to the
    /// firmware.
    pub(in crate::device) fn delete_accounts(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let is_kept = |entry: &Entry| {
            let path = entry.resource.path;
            let is_own = path.object_id() == SECURITY_OBJECT
                && path.instance_id() == Some(0)
                && entries.iter().any(is_bootstrap_account);
            entry.resource.value.is_none() || is_own || !DELETED.contains(&path.object_id())
        };
        self.entries = entries.iter().filter(|it| is_kept(it)).cloned().collect();
    }

    /// Writes an instance, which is created if it does not exist.
    pub(in crate::device) fn provision(
        &mut self,
        instance: Path,
        by: &Message,
    ) -> Result<ResponseContent, Code> {
        let formats = self.formats.clone();
        let values = formats.decode_several(instance, by, |path| self.type_of(path))?;
        if !values.keys().all(|path| instance.contains(*path)) {
            return Err(Code::BAD_REQUEST);
        }
        let is_replaced = |entry: &Entry| {
            instance.contains(entry.resource.path) && entry.resource.value.is_some()
        };
        self.entries.retain(|entry| !is_replaced(entry));
        let written = values.into_iter();
        let written = written.map(|(path, value)| Entry::new(Resource::holding(path, value)));
        self.add(written.collect());
        Ok(ResponseContent::of(Code::CHANGED))
    }

    fn is_of_bootstrap(&self, instance: u16) -> bool {
        let is_bootstrap = Path::resource(SECURITY_OBJECT, instance, 1);
        self.value(is_bootstrap) == Some(&Value::Boolean(true))
    }

    fn values_of(&self, object: u16, resource: u16) -> impl Iterator<Item = (u16, &Value)> {
        let of_object = self.within(Path::object(object));
        let of_resource =
            of_object.filter(move |it| it.resource.path.resource_id() == Some(resource));
        of_resource
            .filter_map(|it| Some((it.resource.path.instance_id()?, it.resource.value.as_ref()?)))
    }
}

/// Whether an entry says that instance 0 is the account of the bootstrap server.
fn is_bootstrap_account(entry: &Entry) -> bool {
    let path = Path::resource(SECURITY_OBJECT, 0, 1);
    entry.resource.path == path && entry.resource.value == Some(Value::Boolean(true))
}

/// The account of the bootstrap server, which the device has from its factory.
pub(in crate::device) fn bootstrap_account(uri: &str) -> [Resource; 3] {
    let at = |id| Path::resource(SECURITY_OBJECT, 0, id);
    [
        Resource::holding(at(0), Value::String(uri.to_owned())),
        Resource::holding(at(1), Value::Boolean(true)),
        Resource::holding(at(2), Value::Integer(3)),
    ]
}
