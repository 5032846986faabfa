//! Feed inputs, compare the exact list of effects.

mod amending;
mod answers;
mod attempts;
mod cancelling;
mod compact;
mod exchanging;
mod expiring;
mod notifying;
mod observing;
mod observing_again;
mod occurring;
mod pacing;
mod promising;
mod queue_mode;
mod readings;
mod refusals;
mod registering;
mod restoring;
mod state_table;
mod timelines;
mod updating;
mod values;
mod vocabulary;
