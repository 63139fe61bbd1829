//! The few lines of the tar format (ustar) that plain files need.

/// Everything comes in blocks of this size.
pub const BLOCK: usize = 512;
/// What stands at the end.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];
/// The largest file that its header can tell.
pub const MAX_SIZE: u64 = 0o777_7777_7777;

/// What a header tells.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub size: u64,
}

/// The header of a plain file; none where its name or size don't fit.
#[must_use]
pub fn header(entry: &Entry, seconds: u64) -> Option<[u8; BLOCK]> {
    if entry.name.len() > 100 || entry.size > MAX_SIZE {
        return None;
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, &entry.name);
    put(100, "0000600\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", entry.size));
    put(136, &format!("{:011o}\0", seconds.min(MAX_SIZE)));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum = sum(&block);
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

/// Reads a header; none for a block of zeros, which ends an archive.
pub fn read(block: &[u8; BLOCK]) -> Result<Option<Entry>, &'static str> {
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if &block[257..262] != b"ustar" {
        return Err("it is no tar archive");
    }
    let mut blank = *block;
    blank[148..156].copy_from_slice(b"        ");
    if number(&block[148..156]) != Some(u64::from(sum(&blank))) {
        return Err("a header in it is damaged");
    }
    if !matches!(block[156], b'0' | 0) {
        return Err("it holds something that is no plain file");
    }
    if block[345] != 0 {
        return Err("a name in it is too long");
    }
    let name = block[..100].split(|byte| *byte == 0).next().unwrap_or_default();
    let name = std::str::from_utf8(name).map_err(|_| "a name in it is no text")?.to_string();
    let size = number(&block[124..136]).ok_or("a size in it is no number")?;
    Ok(Some(Entry { name, size }))
}

/// How many zeros follow a file of this size.
#[must_use]
pub fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    (BLOCK - over) % BLOCK
}

fn sum(block: &[u8; BLOCK]) -> u32 {
    block.iter().map(|byte| u32::from(*byte)).sum()
}

/// A number in base 8, with blanks around it.
fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches([' ', '\0']);
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { u64::from_str_radix(text, 8).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back() {
        for (name, size) in [("session.json", 0), ("events.jsonl", 511), ("x", MAX_SIZE)] {
            let entry = Entry { name: name.into(), size };
            assert_eq!(read(&header(&entry, 1_794_778_891).unwrap()), Ok(Some(entry)));
        }
        assert!(header(&Entry { name: "x".repeat(101), size: 0 }, 0).is_none());
        assert!(header(&Entry { name: "x".into(), size: MAX_SIZE + 1 }, 0).is_none());
        assert_eq!((padding(0), padding(1), padding(512), padding(513)), (0, 511, 0, 511));
    }

    #[test]
    fn what_is_off_is_refused() {
        let good = header(&Entry { name: "x".into(), size: 5 }, 0).unwrap();
        assert_eq!(read(&[0; BLOCK]), Ok(None));
        assert_eq!(read(&[b'x'; BLOCK]), Err("it is no tar archive"));
        for at in [0, 124, 156] {
            let mut damaged = good;
            damaged[at] ^= 1;
            assert_eq!(read(&damaged), Err("a header in it is damaged"), "{at}");
        }
        let mut link = good;
        link[156] = b'2';
        link[148..156].copy_from_slice(b"        ");
        let sum = format!("{:06o}\0 ", sum(&link));
        link[148..156].copy_from_slice(sum.as_bytes());
        assert_eq!(read(&link), Err("it holds something that is no plain file"));
    }
}
