//! One device: what it is heard to say and what is asked of it, decided.

pub mod queue;
pub mod record;
pub mod snapshot;
