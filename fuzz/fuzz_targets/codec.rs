//! Frames of the Debug Adapter Protocol: no bytes make the codec panic, or differ by where the stream is cut.

#![no_main]

use bugeye::dap::Codec;
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use tokio_util::codec::Decoder as _;

fn decode(chunks: &[&[u8]]) -> (usize, bool) {
    let (mut codec, mut bytes, mut messages) = (Codec::default(), BytesMut::new(), 0);
    for chunk in chunks {
        bytes.extend_from_slice(chunk);
        loop {
            match codec.decode(&mut bytes) {
                Ok(Some(_)) => messages += 1,
                Ok(None) => break,
                Err(_) => return (messages, false),
            }
        }
    }
    (messages, true)
}

fuzz_target!(|data: &[u8]| {
    let whole = decode(&[data]);
    let (head, tail) = data.split_at(data.len() / 2);
    let cut = decode(&[head, tail]);
    assert_eq!(whole.0, cut.0);
});
