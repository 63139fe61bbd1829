//! Coding agents as debuggees: held before they act, looked at, changed, and let go on.
//!
//! `bugeye adapter agent` is a translator like the others (see `translate.rs`): it speaks the debug protocol on its
//! standard streams, so that a session never knows the difference. On its other side are taps: what an agent offers
//! to be watched and held by. A tap asks at a gate whether the agent may go on, and tells what it saw; the broker
//! judges, keeps what waits, and makes stops, frames and variables of it.
//!
//! ```text
//!  agent ── hooks (`bugeye hook`) ──┐
//!    │      SDK, JSONL ─────────────┼─ socket ─► broker ⇄ debug protocol ⇄ session
//!    └───── model calls ─► model tap┘
//! ```

pub mod alias;
pub mod breaks;
pub mod broker;
pub mod files;
pub mod gate;
pub mod hook;
pub mod launch;
pub mod model;
pub mod path;
mod private;
mod serve;
pub mod socket;
pub mod state;
pub mod talk;
pub mod translator;
pub mod wire;
