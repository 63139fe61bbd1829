//! Ten situations a debugger is for, on real programs, with the exact values a user must see.

mod children;
mod crashes;
mod exceptions;
mod input;
mod loops;
mod stacks;
mod values;
