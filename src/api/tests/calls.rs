//! Who may call what, and what is said to calls that cannot be served?

mod amending;
mod directory;
mod finding;
mod importing;
mod refusals;
mod tokens;
