//! How does a device hear that its customer said anew who it is?

use actix::{Context, Handler, Message};
use engine::ids::DeviceKey;

use crate::device::{Input, Renamed};
use crate::registry::Registry;
use crate::residents::Resident;

/// A device of this arbiter is to go by what its customer made of it, which is durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Rename {
    pub(crate) key: DeviceKey,
    pub(crate) renamed: Box<Renamed>,
}

impl Handler<Rename> for Registry {
    type Result = ();

    /// Also a device that is not here is brought back: it may be on a page that was read before.
    fn handle(&mut self, rename: Rename, ctx: &mut Context<Self>) {
        let Rename { key, renamed } = rename;
        match self.residents.get(key) {
            // It is what it is by then when it is brought back.
            Some(Resident::Parked) => {
                // A caller who went away does not miss the answer.
                let _ = renamed.reply.send(Ok(())).is_ok();
            }
            Some(Resident::Live(_) | Resident::Restoring(_)) | None => {
                self.hand(key, Input::Renamed(renamed), ctx);
            }
        }
    }
}
