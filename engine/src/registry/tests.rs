//! Which datagram goes where.
