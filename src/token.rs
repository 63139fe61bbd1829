//! Secrets that let somebody in: made here, and compared so that a guess learns nothing.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// A new one: 256 bits, in hexadecimal digits.
pub fn fresh() -> io::Result<String> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that tells nothing about where they differ.
#[must_use]
pub fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |sum, (left, right)| sum | (left ^ right)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_new_and_only_itself() {
        let (one, other) = (fresh().unwrap(), fresh().unwrap());
        assert!(one.len() == 64 && one != other);
        assert!(same(one.as_bytes(), one.as_bytes()) && !same(one.as_bytes(), other.as_bytes()));
        assert!(!same(one.as_bytes(), &one.as_bytes()[..63]) && !same(b"", one.as_bytes()));
    }
}
