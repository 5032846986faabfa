//! Does the API keep its promises, route by route and call by call? Over the embedded store and
//! without devices; what devices do is asked of the whole service elsewhere.

mod accepted;
mod bodies;
mod calls;
mod definitions;
mod docs;
mod document;
mod golden;
mod integrations;
mod records;
mod scripted;
mod table;
mod test_service;
