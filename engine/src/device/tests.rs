//! Feed inputs, compare the exact list of effects.

mod answers;
mod attempts;
mod cancelling;
mod compact;
mod exchanging;
mod expiring;
mod queue_mode;
mod refusals;
mod registering;
mod restoring;
mod state_table;
mod updating;
mod values;
mod vocabulary;
