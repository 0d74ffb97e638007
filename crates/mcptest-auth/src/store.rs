//! The store of logins: one encrypted file.
//!
//! All logins are in one file, encrypted with ChaCha20-Poly1305 under a fresh nonce at every write,
//! and replaced as a whole. The key is derived from a passphrase, or is random and kept in the
//! system's keychain, or in a file that only the user may read (see [`key`]).

mod key;
mod keychain;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

pub use self::key::KeySource;
use self::key::{Key, KeyHolder, SALT_LEN};
use crate::client::Client;
use crate::server_metadata::AuthorizationServer;

/// The version of the file.
const VERSION: u32 = 1;

/// The largest file that is read.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The longest wait for another process that uses the store.
const LOCK_WAIT: Duration = Duration::from_secs(60);
const LOCK_CHECK: Duration = Duration::from_millis(50);

const FILE: &str = "logins.json";
const LOCK: &str = "lock";

/// A failure of the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub(crate) String);

/// The settings of the store.
#[derive(Clone, Default)]
pub struct StoreOptions {
    /// The folder of the store.
    pub folder: PathBuf,
    /// The passphrase, if the key is derived from one.
    pub passphrase: Option<String>,
    /// True if the system's keychain may be asked.
    pub uses_keychain: bool,
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("folder", &self.folder)
            .field("has_passphrase", &self.passphrase.is_some())
            .field("uses_keychain", &self.uses_keychain)
            .finish()
    }
}

/// One login: tokens for a server, and what is needed to refresh them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Login {
    /// The address of the server.
    pub(crate) server: String,
    pub(crate) authorization_server: AuthorizationServer,
    pub(crate) client: Client,
    pub(crate) resource: Option<String>,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    /// The expiry of the access token, in seconds since 1970.
    pub(crate) expires_at: Option<u64>,
    /// The lifetime of the access token, in seconds.
    pub(crate) lifetime: Option<u64>,
    pub(crate) requested: Vec<String>,
    pub(crate) granted: Option<Vec<String>>,
    /// The digest of the refresh token of the environment that this one replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<String>,
}

impl Login {
    /// Its key in the store.
    pub(crate) fn key(&self) -> String {
        match &self.replaces {
            None => self.server.clone(),
            Some(digest) => format!("{} {digest}", self.server),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("server", &self.server)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The file as written.
#[derive(Serialize, Deserialize)]
struct Sealed {
    version: u32,
    key: KeySource,
    /// The salt of a passphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    nonce: String,
    logins: String,
}

/// The logins of the user. Cheap until it is used.
#[derive(Debug, Clone)]
pub struct Store {
    options: StoreOptions,
}

/// Holds the store for this process.
pub(crate) struct StoreLock(#[expect(dead_code, reason = "closing it unlocks")] fs::File);

impl Store {
    /// A store in a folder; nothing is read yet.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        Self { options }
    }

    /// The file of the store.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.options.folder.join(FILE)
    }

    /// The source of the key that the file is encrypted with; `None` if there is no file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn key_source(&self) -> Result<Option<KeySource>, StoreError> {
        Ok(self.read_sealed()?.map(|sealed| sealed.key))
    }

    /// Waits until no other process uses the store.
    pub(crate) fn lock(&self) -> Result<StoreLock, StoreError> {
        self.create_folder()?;
        let path = self.options.folder.join(LOCK);
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed("lock", &path, &error))?;
        let until = Instant::now() + LOCK_WAIT;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(StoreLock(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                    thread::sleep(LOCK_CHECK);
                }
                Err(error) => return Err(failed("lock", &path, &error.into())),
            }
        }
    }

    /// All logins, by their key.
    pub(crate) fn logins(&self) -> Result<BTreeMap<String, Login>, StoreError> {
        let Some(sealed) = self.read_sealed()? else {
            return Ok(BTreeMap::new());
        };
        let key = self.holder().open(sealed.key, salt_of(&sealed)?)?;
        let damaged = || {
            StoreError(format!(
                "{} cannot be decrypted: {}; delete it and log in again",
                self.path().display(),
                match sealed.key {
                    KeySource::Passphrase =>
                        "the passphrase does not match, or the file is damaged",
                    _ => "its key has changed, or the file is damaged",
                }
            ))
        };
        let nonce = STANDARD.decode(&sealed.nonce).map_err(|_| damaged())?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).map_err(|_| damaged())?;
        let mut bytes = STANDARD.decode(&sealed.logins).map_err(|_| damaged())?;
        let plain = aead(&key)
            .open_in_place(nonce, Aad::from(context(sealed.key)), &mut bytes)
            .map_err(|_| damaged())?;
        let logins: Vec<Login> = serde_json::from_slice(plain).map_err(|_| damaged())?;
        let named = logins.into_iter().map(|login| (login.key(), login));
        Ok(named.collect())
    }

    /// Changes the logins. The caller holds the lock.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Login>),
    ) -> Result<(), StoreError> {
        let mut logins = self.logins()?;
        change(&mut logins);
        if logins.is_empty() {
            return self.clear();
        }
        self.write(&logins)
    }

    fn write(&self, logins: &BTreeMap<String, Login>) -> Result<(), StoreError> {
        self.create_folder()?;
        let before = self.key_source()?;
        let random = || StoreError("the system provides no random numbers".to_owned());
        let rng = SystemRandom::new();
        let mut salt = [0; SALT_LEN];
        rng.fill(&mut salt).map_err(|_| random())?;
        let key = self.holder().create(before, salt)?;
        let mut nonce = [0; NONCE_LEN];
        rng.fill(&mut nonce).map_err(|_| random())?;
        let all: Vec<&Login> = logins.values().collect();
        let mut bytes = serde_json::to_vec(&all)
            .map_err(|error| StoreError(format!("the logins cannot be written: {error}")))?;
        aead(&key)
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context(key.source)),
                &mut bytes,
            )
            .map_err(|_| StoreError("the logins cannot be encrypted".to_owned()))?;
        let sealed = Sealed {
            version: VERSION,
            key: key.source,
            salt: (key.source == KeySource::Passphrase).then(|| STANDARD.encode(salt)),
            nonce: STANDARD.encode(nonce),
            logins: STANDARD.encode(bytes),
        };
        let mut text = serde_json::to_string_pretty(&sealed)
            .map_err(|error| StoreError(format!("the logins cannot be written: {error}")))?;
        text.push('\n');
        mcptest_files::remove_leftovers(&self.path());
        write_private(&self.path(), text.as_bytes())
    }

    /// Removes all logins, also those that cannot be decrypted.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn clear(&self) -> Result<(), StoreError> {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &self.path(), &error))
            }
            _ => Ok(()),
        }
    }

    fn holder(&self) -> KeyHolder<'_> {
        KeyHolder {
            options: &self.options,
        }
    }

    fn create_folder(&self) -> Result<(), StoreError> {
        let folder = &self.options.folder;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed("create", folder, &error))
    }

    fn read_sealed(&self) -> Result<Option<Sealed>, StoreError> {
        let path = self.path();
        let size = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, &error)),
        };
        let shown = path.display();
        if size > MAX_BYTES {
            return Err(StoreError(format!("{shown} is too large to be a store")));
        }
        let bytes = fs::read(&path).map_err(|error| failed("read", &path, &error))?;
        let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|_| {
            StoreError(format!(
                "{shown} is not a store of logins; delete it and log in again"
            ))
        })?;
        if sealed.version != VERSION {
            return Err(StoreError(format!(
                "{shown} has version {}, and this program reads version {VERSION}",
                sealed.version
            )));
        }
        Ok(Some(sealed))
    }
}

/// Data that is authenticated with the logins: a file cannot pretend another kind of key.
fn context(source: KeySource) -> String {
    format!("mcptest logins {VERSION} {}", source.as_str())
}

fn aead(key: &Key) -> LessSafeKey {
    // The length is that of the algorithm, so this cannot fail.
    #[expect(clippy::unwrap_used, reason = "a key of 32 bytes has the right length")]
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, &key.bytes).unwrap();
    LessSafeKey::new(unbound)
}

fn salt_of(sealed: &Sealed) -> Result<Option<[u8; SALT_LEN]>, StoreError> {
    let Some(salt) = &sealed.salt else {
        return Ok(None);
    };
    let bytes = STANDARD.decode(salt).ok();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .map(Some)
        .ok_or_else(|| StoreError("the store has an invalid salt".to_owned()))
}

/// Replaces a file that only the user may read.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    use std::io::Write as _;
    let write = || -> io::Result<()> {
        let mut file = mcptest_files::AtomicFile::create_private(path)?;
        file.write_all(bytes)?;
        file.commit()
    };
    write().map_err(|error| failed("write", path, &error))
}

/// Returns true if others than the user may read a file.
fn is_shared(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
