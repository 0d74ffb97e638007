//! ZIP archives: a list of files that are read one by one.
//!
//! Stored, deflated (8) and Zstandard (93) files, with ZIP64. Nothing is trusted: sizes bound what
//! is read, never what is allocated, and all offsets are checked.

use std::io::Read as _;

use crate::error::FormatError;

/// The size of the largest file in an archive: 512 MiB.
const MAX_FILE: u64 = 512 << 20;
/// The size of all files that are read from an archive: 8 GiB.
const MAX_ALL: u64 = 8 << 30;
/// The number of files in an archive.
const MAX_FILES: u64 = 1_000_000;

/// A ZIP archive.
pub(crate) struct Archive<'a> {
    format: &'static str,
    bytes: &'a [u8],
    files: Vec<Entry>,
    /// The bytes that may still be read.
    left: u64,
}

/// A file in an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its path.
    pub name: String,
    method: u16,
    encrypted: bool,
    compressed: u64,
    /// The offset of its local header.
    offset: u64,
}

impl<'a> Archive<'a> {
    /// Reads the list of files.
    ///
    /// # Errors
    /// The archive is damaged.
    pub fn open(format: &'static str, bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut archive = Self {
            format,
            bytes,
            files: Vec::new(),
            left: MAX_ALL,
        };
        let Some((count, start)) = directory(bytes) else {
            return Err(archive.damaged("it has no list of files at its end: it may be cut off"));
        };
        if count > MAX_FILES {
            return Err(archive.damaged("it has more than 1,000,000 files"));
        }
        let mut at = start;
        for _ in 0..count {
            let Some((entry, next)) = entry(bytes, at) else {
                return Err(archive.damaged("its list of files is incomplete"));
            };
            archive.files.push(entry);
            at = next;
        }
        Ok(archive)
    }

    /// The files, in the order of the list.
    pub fn files(&self) -> &[Entry] {
        &self.files
    }

    /// The content of a file.
    ///
    /// # Errors
    /// The file is damaged, too large or compressed in an unknown way.
    pub fn read(&mut self, entry: &Entry) -> Result<Vec<u8>, FormatError> {
        let limit = MAX_FILE.min(self.left);
        let read = decompressed(self.bytes, entry, limit);
        let content = read.map_err(|problem| {
            let name = crate::error::shown(&entry.name);
            self.damaged(&format!("{name}: {problem}"))
        })?;
        self.left = self.left.saturating_sub(content.len() as u64);
        Ok(content)
    }

    fn damaged(&self, message: &str) -> FormatError {
        FormatError::Archive {
            format: self.format,
            message: message.to_owned(),
        }
    }
}

fn decompressed(bytes: &[u8], entry: &Entry, limit: u64) -> Result<Vec<u8>, String> {
    if entry.encrypted {
        return Err("it is encrypted".to_owned());
    }
    let data = data(bytes, entry).ok_or("its data is missing or cut off")?;
    let mut content = Vec::new();
    let mut take = |reader: &mut dyn std::io::Read| {
        // One byte more than allowed, to see that there is more.
        reader.take(limit + 1).read_to_end(&mut content)
    };
    let read = match entry.method {
        0 => take(&mut &data[..]),
        8 => take(&mut flate2::read::DeflateDecoder::new(data)),
        93 => match ruzstd::decoding::StreamingDecoder::new(data) {
            Ok(mut decoder) => take(&mut decoder),
            Err(error) => return Err(format!("it cannot be decompressed: {error}")),
        },
        other => return Err(format!("compression method {other} is not supported")),
    };
    match read {
        Err(error) => Err(format!("it cannot be decompressed: {error}")),
        Ok(size) if size as u64 > limit => Err(format!("it has more than {limit} bytes")),
        Ok(_) => Ok(content),
    }
}

fn u16_at(bytes: &[u8], at: u64) -> Option<u16> {
    let at = usize::try_from(at).ok()?;
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(part.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    let at = usize::try_from(at).ok()?;
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(part.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let part = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(part.try_into().ok()?))
}

/// The number of files, and the offset of their list.
fn directory(bytes: &[u8]) -> Option<(u64, u64)> {
    const END: usize = 22;
    // The record is at the end, before a comment of at most 65,535 bytes.
    let last = bytes.len().checked_sub(END)?;
    let first = last.saturating_sub(65_535);
    let end = (first..=last)
        .rev()
        .find(|at| bytes[*at..].starts_with(b"PK\x05\x06"))? as u64;
    let count = u16_at(bytes, end + 10)?;
    let start = u32_at(bytes, end + 16)?;
    if count != u16::MAX && start != u32::MAX {
        return Some((count.into(), start.into()));
    }
    // The locator before it leads to the record with 64-bit numbers.
    let locator = end.checked_sub(20)?;
    if u32_at(bytes, locator)? != 0x0706_4b50 {
        return Some((count.into(), start.into()));
    }
    let record = u64_at(bytes, locator + 8)?;
    if u32_at(bytes, record)? != 0x0606_4b50 {
        return None;
    }
    Some((
        u64_at(bytes, record.checked_add(32)?)?,
        u64_at(bytes, record.checked_add(48)?)?,
    ))
}

/// An entry of the list, and the offset of the next one.
fn entry(bytes: &[u8], at: u64) -> Option<(Entry, u64)> {
    if u32_at(bytes, at)? != 0x0201_4b50 {
        return None;
    }
    let flags = u16_at(bytes, at + 8)?;
    let mut compressed = u64::from(u32_at(bytes, at + 20)?);
    let size = u32_at(bytes, at + 24)?;
    let name_length = u64::from(u16_at(bytes, at + 28)?);
    let extra_length = u64::from(u16_at(bytes, at + 30)?);
    let comment_length = u64::from(u16_at(bytes, at + 32)?);
    let mut offset = u64::from(u32_at(bytes, at + 42)?);
    let name_at = at + 46;
    let extra_at = name_at + name_length;
    let end = extra_at + extra_length;
    let name = bytes.get(usize::try_from(name_at).ok()?..usize::try_from(extra_at).ok()?)?;
    // Numbers that need 64 bits are in an extra field, in this order.
    let mut field = extra_at;
    while field + 4 <= end {
        let (kind, length) = (u16_at(bytes, field)?, u64::from(u16_at(bytes, field + 2)?));
        if kind == 1 {
            let mut value = field + 4;
            if size == u32::MAX {
                value += 8;
            }
            if compressed == u64::from(u32::MAX) {
                compressed = u64_at(bytes, value)?;
                value += 8;
            }
            if offset == u64::from(u32::MAX) {
                offset = u64_at(bytes, value)?;
            }
        }
        field += 4 + length;
    }
    let entry = Entry {
        name: String::from_utf8_lossy(name).into_owned(),
        method: u16_at(bytes, at + 10)?,
        encrypted: flags & 1 == 1,
        compressed,
        offset,
    };
    Some((entry, end + comment_length))
}

/// The compressed bytes of a file.
fn data<'a>(bytes: &'a [u8], entry: &Entry) -> Option<&'a [u8]> {
    let at = entry.offset;
    if u32_at(bytes, at)? != 0x0403_4b50 {
        return None;
    }
    let name_length = u64::from(u16_at(bytes, at.checked_add(26)?)?);
    let extra_length = u64::from(u16_at(bytes, at.checked_add(28)?)?);
    let start = at.checked_add(30 + name_length + extra_length)?;
    let end = start.checked_add(entry.compressed)?;
    bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// An archive of files: name, method, stored bytes.
    fn archive(files: &[(&str, u16, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut list = Vec::new();
        for (name, method, data) in files {
            let offset = bytes.len() as u32;
            let sizes = |out: &mut Vec<u8>| {
                out.extend(method.to_le_bytes());
                out.extend([0; 8]);
                out.extend((data.len() as u32).to_le_bytes());
                out.extend([0; 4]);
                out.extend((name.len() as u16).to_le_bytes());
                out.extend([0; 2]);
            };
            bytes.extend(b"PK\x03\x04\x14\0\0\0");
            sizes(&mut bytes);
            bytes.extend(name.as_bytes());
            bytes.extend(data);
            list.extend(b"PK\x01\x02\x14\0\x14\0\0\0");
            sizes(&mut list);
            list.extend([0; 10]);
            list.extend(offset.to_le_bytes());
            list.extend(name.as_bytes());
        }
        let start = bytes.len() as u32;
        let count = files.len() as u16;
        bytes.extend(&list);
        bytes.extend(b"PK\x05\x06\0\0\0\0");
        bytes.extend(count.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend((list.len() as u32).to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }

    fn deflated(data: &[u8]) -> Vec<u8> {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(data: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn read(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, FormatError> {
        let mut archive = Archive::open("inspect", bytes)?;
        let files = archive.files().to_vec();
        files
            .iter()
            .map(|file| Ok((file.name.clone(), archive.read(file)?)))
            .collect()
    }

    #[test]
    fn stored_deflated_and_zstandard_files_are_read() {
        let text = b"some text, some text, some text".to_vec();
        let bytes = archive(&[
            ("a", 0, text.clone()),
            ("b", 8, deflated(&text)),
            ("c", 93, zstandard(&text)),
        ]);
        for (_, content) in read(&bytes).unwrap() {
            assert_eq!(content, text);
        }
    }

    #[test]
    fn damaged_archives_are_errors() {
        let whole = archive(&[("a", 0, b"text".to_vec())]);
        let cut = &whole[..whole.len() - 4];
        assert!(
            read(cut)
                .unwrap_err()
                .to_string()
                .contains("it may be cut off")
        );
        let unknown = archive(&[("a", 12, b"text".to_vec())]);
        let error = read(&unknown).unwrap_err().to_string();
        assert_eq!(
            error,
            "not a readable inspect archive: a: compression method 12 is not supported"
        );
        let broken = archive(&[("a", 8, b"\xff\xff\xff".to_vec())]);
        assert!(
            read(&broken)
                .unwrap_err()
                .to_string()
                .contains("decompressed")
        );
    }

    #[test]
    fn a_file_that_grows_beyond_the_limit_is_an_error() {
        let bytes = archive(&[("a", 8, deflated(&vec![0; 100_000]))]);
        let entry = Archive::open("inspect", &bytes).unwrap().files()[0].clone();
        assert_eq!(
            decompressed(&bytes, &entry, 100_000).unwrap().len(),
            100_000
        );
        let error = decompressed(&bytes, &entry, 99_999).unwrap_err();
        assert_eq!(error, "it has more than 99999 bytes");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_archive_or_an_error(
            at in 0_usize..200, byte in any::<u8>(), cut in 0_usize..200
        ) {
            let text = b"some text".to_vec();
            let mut bytes = archive(&[("a", 0, text.clone()), ("b", 93, zstandard(&text))]);
            if let Some(target) = bytes.get_mut(at) {
                *target = byte;
            }
            bytes.truncate(bytes.len() - cut.min(bytes.len()));
            let _ = read(&bytes);
        }
    }
}
