//! Is every pack read as the standard means it, and every fault in one named?
