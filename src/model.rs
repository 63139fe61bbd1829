//! The nouns: plain data that every layer shares, with no I/O and no decisions beyond parsing.

pub mod breakpoint;
mod event;
mod expression;
mod hit;
pub mod number;
pub mod place;
pub mod stop;
pub mod target;
pub mod value;
pub mod view;

pub use breakpoint::{Binding, BindingState, Breakpoint, BreakpointReport};
pub use event::{AGENT_EVENT_TYPES, EVENT_TYPES, Event};
pub use expression::is_pure;
pub use hit::{Crossing, Hit, HitFrame, Point, Reading, UNAVAILABLE};
pub use number::Number;
pub use place::Place;
pub use stop::{Ending, Frame, Reason, SessionState, Stop, ThreadInfo};
pub use target::{Aim, Launch, Remote, Stdin, Target};
pub use value::{Change, Value, Variable};
pub use view::View;
