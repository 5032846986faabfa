//! Feed inputs, compare the exact list of effects.
