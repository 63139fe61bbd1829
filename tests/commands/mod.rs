//! Every command on every adapter.
