//! The key of the store, and the places where it is kept.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::pbkdf2;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use super::{StoreError, StoreOptions, failed, is_shared, keychain, write_private};

/// The length of a key.
pub(super) const KEY_LEN: usize = 32;

/// The length of the salt of a passphrase.
pub(super) const SALT_LEN: usize = 16;

/// The work of deriving a key from a passphrase (OWASP's figure for PBKDF2 with HMAC-SHA-256).
const ITERATIONS: u32 = 600_000;

/// The file of a random key.
const KEY_FILE: &str = "key";

/// The place of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// Derived from a passphrase.
    Passphrase,
    /// In the system's keychain.
    Keychain,
    /// In a file that only the user may read, beside the store.
    File,
}

impl KeySource {
    /// The name in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passphrase => "passphrase",
            Self::Keychain => "keychain",
            Self::File => "file",
        }
    }
}

/// A key, and its place.
pub(super) struct Key {
    pub(super) bytes: [u8; KEY_LEN],
    pub(super) source: KeySource,
}

/// Finds and creates keys.
pub(super) struct KeyHolder<'a> {
    pub(super) options: &'a StoreOptions,
}

impl KeyHolder<'_> {
    /// The key of an existing store.
    pub(super) fn open(
        &self,
        source: KeySource,
        salt: Option<[u8; SALT_LEN]>,
    ) -> Result<Key, StoreError> {
        let bytes = match source {
            KeySource::Passphrase => {
                let passphrase = self.options.passphrase.as_deref().ok_or_else(|| {
                    StoreError(
                        "the logins are encrypted with a passphrase: set MCPTEST_AUTH_PASSPHRASE"
                            .to_owned(),
                    )
                })?;
                derive(passphrase, &salt.unwrap_or_default())
            }
            KeySource::Keychain => {
                let found = keychain::read().map_err(|reason| {
                    StoreError(format!(
                        "the key of the logins is in the system's keychain, which cannot be \
                         read: {reason}"
                    ))
                })?;
                let text = found.ok_or_else(|| {
                    StoreError(
                        "the key of the logins is not in the system's keychain, or that is locked: \
                         unlock it, or run `mcptest auth logout --all` and log in again"
                            .to_owned(),
                    )
                })?;
                decode(&text)?
            }
            KeySource::File => self.read_file()?.ok_or_else(|| {
                StoreError(format!(
                    "the key file {} is gone: run `mcptest auth logout --all` and log in again",
                    self.file().display()
                ))
            })?,
        };
        Ok(Key { bytes, source })
    }

    /// The key to write the store with: a passphrase if there is one, else the key of the store
    /// before, else a new one in the keychain, else a new one in a file.
    pub(super) fn create(
        &self,
        before: Option<KeySource>,
        salt: [u8; SALT_LEN],
    ) -> Result<Key, StoreError> {
        if let Some(passphrase) = &self.options.passphrase {
            return Ok(Key {
                bytes: derive(passphrase, &salt),
                source: KeySource::Passphrase,
            });
        }
        if let Some(source @ (KeySource::Keychain | KeySource::File)) = before {
            return self.open(source, None);
        }
        if self.options.uses_keychain {
            // A keychain that fails is not used; the file is as good as it gets then.
            if let Ok(Some(text)) = keychain::read() {
                return Ok(Key {
                    bytes: decode(&text)?,
                    source: KeySource::Keychain,
                });
            }
            let bytes = random()?;
            if keychain::write(&STANDARD.encode(bytes)).is_ok() {
                return Ok(Key {
                    bytes,
                    source: KeySource::Keychain,
                });
            }
        }
        let bytes = match self.read_file()? {
            Some(bytes) => bytes,
            None => {
                let bytes = random()?;
                write_private(&self.file(), STANDARD.encode(bytes).as_bytes())?;
                bytes
            }
        };
        Ok(Key {
            bytes,
            source: KeySource::File,
        })
    }

    fn file(&self) -> PathBuf {
        self.options.folder.join(KEY_FILE)
    }

    fn read_file(&self) -> Result<Option<[u8; KEY_LEN]>, StoreError> {
        let path = self.file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, &error)),
        };
        if is_shared(&path).map_err(|error| failed("read", &path, &error))? {
            return Err(StoreError(format!(
                "the key file {0} can be read by others: run `chmod 600 {0}`",
                path.display()
            )));
        }
        decode(&text).map(Some)
    }
}

fn random() -> Result<[u8; KEY_LEN], StoreError> {
    let mut bytes = [0; KEY_LEN];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| StoreError("the system provides no random numbers".to_owned()))?;
    Ok(bytes)
}

fn decode(text: &str) -> Result<[u8; KEY_LEN], StoreError> {
    let bytes = STANDARD.decode(text.trim()).ok();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| {
            StoreError(
                "the key of the logins is damaged: run `mcptest auth logout --all` and log in \
                 again"
                    .to_owned(),
            )
        })
}

fn derive(passphrase: &str, salt: &[u8]) -> [u8; KEY_LEN] {
    let mut key = [0; KEY_LEN];
    // The figure is not zero.
    let iterations = NonZeroU32::new(ITERATIONS).unwrap_or(NonZeroU32::MIN);
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        iterations,
        salt,
        passphrase.as_bytes(),
        &mut key,
    );
    key
}
