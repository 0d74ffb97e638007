//! Compressed trace files, recognised by their first bytes and read as a stream.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The size of a read from the compressed input.
const BUFFER: usize = 128 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The first bytes of a zstd frame without content, apart from the lowest four bits.
const SKIPPABLE: &[u8] = &[0x50, 0x2a, 0x4d, 0x18];

type Start<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// An input that is decompressed if its first bytes are those of gzip or Zstandard.
///
/// Memory does not depend on the size of the content: it is bounded by the window of the format,
/// and a Zstandard frame that needs more than 100 MiB is an error.
pub enum Decompressed<R: Read> {
    /// Any other input, as it is.
    Plain(Chain<Cursor<Vec<u8>>, R>),
    /// All members of a gzip file.
    Gzip(Box<MultiGzDecoder<Start<R>>>),
    /// All frames of a Zstandard file.
    Zstd(Box<Frames<Start<R>>>),
}

impl<R: Read> Decompressed<R> {
    /// Reads the first bytes of an input.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut head = Vec::new();
        let length = ZSTD.len() as u64;
        input.by_ref().take(length).read_to_end(&mut head)?;
        let is_gzip = head.starts_with(GZIP);
        let is_zstd = head.starts_with(ZSTD) || is_skippable(&head);
        let whole = Cursor::new(head).chain(input);
        Ok(if is_gzip {
            let buffered = BufReader::with_capacity(BUFFER, whole);
            Self::Gzip(Box::new(MultiGzDecoder::new(buffered)))
        } else if is_zstd {
            Self::Zstd(Box::new(Frames {
                input: BufReader::with_capacity(BUFFER, whole),
                decoder: FrameDecoder::new(),
                in_frame: false,
            }))
        } else {
            Self::Plain(whole)
        })
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer).map_err(|error| named("gzip", error)),
            Self::Zstd(frames) => frames.read(buffer).map_err(|error| named("zstd", error)),
        }
    }
}

fn named(format: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("damaged {format} data: {error}"))
}

fn is_skippable(head: &[u8]) -> bool {
    head.len() >= SKIPPABLE.len() && head[0] & 0xf0 == SKIPPABLE[0] && head[1..4] == SKIPPABLE[1..]
}

/// The content of the Zstandard frames of an input, one after the other.
pub struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one_block = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder
                    .decode_blocks(&mut self.input, one_block)
                    .map_err(io::Error::other)?;
            }
            let got = self.decoder.read(buffer)?;
            if got > 0 {
                return Ok(got);
            }
            self.in_frame = false;
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(io::Error::other("the checksum does not match"));
            }
        }
    }
}

impl<R: BufRead> Frames<R> {
    /// Begins the next frame; false at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.input.by_ref().take(u64::from(length));
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        Decompressed::new(bytes)?.read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn several_members_and_frames_are_read_to_the_end() {
        assert_eq!(
            read(&[gzip(b"one\n"), gzip(b"two\n")].concat()).unwrap(),
            b"one\ntwo\n"
        );
        let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames = [
            skipped.clone(),
            zstd(b"one\n"),
            skipped,
            zstd(b"two\n"),
            zstd(b""),
        ]
        .concat();
        assert_eq!(read(&frames).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn damage_is_an_error() {
        let text = b"some text that is long enough to be compressed, compressed, compressed";
        for (compressed, format) in [(gzip(text), "gzip"), (zstd(text), "zstd")] {
            for cut in 5..compressed.len() {
                let error = read(&compressed[..cut]).unwrap_err().to_string();
                assert!(
                    error.starts_with(&format!("damaged {format} data")),
                    "{error}"
                );
            }
            let more = [&compressed[..], b"garbage"].concat();
            assert!(read(&more).is_err(), "{format}");
        }
        let mut flipped = zstd(text);
        let last = flipped.len() - 1;
        flipped[last] ^= 1;
        let error = read(&flipped).unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
    }

    #[test]
    fn short_and_other_inputs_are_kept() {
        for bytes in [&b""[..], b"{", &[0x1f], &[0x28, 0xb5, 0x2f], b"{}\n[]"] {
            assert_eq!(read(bytes).unwrap(), bytes);
        }
    }

    proptest! {
        #[test]
        fn content_comes_back(parts in prop::collection::vec("[ab\n]{0,400}", 0..5)) {
            let pack = |compress: fn(&[u8]) -> Vec<u8>| -> Vec<u8> {
                parts.iter().flat_map(|part| compress(part.as_bytes())).collect()
            };
            prop_assert_eq!(read(&pack(gzip)).unwrap(), parts.concat().into_bytes());
            prop_assert_eq!(read(&pack(zstd)).unwrap(), parts.concat().into_bytes());
        }

        #[test]
        fn hostile_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for magic in [GZIP, ZSTD, SKIPPABLE] {
                let _ = read(&[magic, &bytes].concat());
            }
        }
    }
}
