//! Who may call what, and what is said to calls that cannot be served?

mod directory;
mod importing;
mod refusals;
mod tokens;
