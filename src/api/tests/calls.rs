//! Who may call what, and what is said to calls that cannot be served?

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
