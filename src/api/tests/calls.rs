//! Who may call which route, and how are calls refused?

mod amending;
mod clouds;
mod directory;
mod every_route;
mod finding;
mod importing;
mod logs;
mod plain_requests;
mod plugins;
mod presence;
mod refusals;
mod relayed;
mod tokens;
