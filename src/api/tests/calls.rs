//! Who may call which route, and how are calls refused?

mod amending;
mod asking;
mod clouds;
mod directory;
mod every_route;
mod finding;
mod importing;
mod logs;
mod refusals;
mod tokens;
