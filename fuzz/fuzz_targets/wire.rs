//! Lines between a client and the daemon: what is read can be written and read again.

#![no_main]

use bugeye::wire::{Line, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(request) = serde_json::from_slice::<Request>(data) {
        let text = serde_json::to_string(&request).expect("what was read can be written");
        let again: Request = serde_json::from_str(&text).expect("and read again");
        assert_eq!((again.v, again.id, &again.cmd), (request.v, request.id, &request.cmd));
    }
    if let Ok(line) = serde_json::from_slice::<Line>(data) {
        let text = serde_json::to_string(&line).expect("what was read can be written");
        assert!(!text.contains('\n'));
    }
});
