//! C and C++ projects: `make TARGET` and `ctest`.

use std::path::Path;

use super::{Asked, Plan};
use crate::failure::Failure;

pub fn locate(_: &Asked) -> Result<Option<Plan>, Failure> {
    Ok(None)
}

pub fn test(_: &Path, _: &str, _: &Asked) -> Result<Option<Vec<String>>, Failure> {
    Ok(None)
}
