//! Tests of the store.

use super::*;
use crate::client::AuthMethod;

pub(crate) fn login(server: &str, token: &str) -> Login {
    let issuer = "https://as.example".to_owned();
    Login {
        server: server.to_owned(),
        authorization_server: AuthorizationServer {
            authorization_endpoint: None,
            token_endpoint: format!("{issuer}/token"),
            registration_endpoint: None,
            revocation_endpoint: None,
            scopes_supported: None,
            grant_types_supported: None,
            auth_methods_supported: None,
            challenge_methods_supported: None,
            sends_issuer: false,
            takes_client_documents: false,
            has_metadata: true,
            issuer,
        },
        client: Client {
            id: "client".to_owned(),
            secret: Some("client-s3cret".to_owned()),
            method: AuthMethod::ClientSecretBasic,
            registered_redirect: None,
            registered_scopes: None,
        },
        resource: None,
        access_token: token.to_owned(),
        refresh_token: Some(format!("refresh-{token}")),
        expires_at: Some(1),
        lifetime: None,
        requested: vec!["read".to_owned()],
        granted: None,
        replaces: None,
    }
}

fn store(folder: &Path, passphrase: Option<&str>) -> Store {
    Store::new(StoreOptions {
        folder: folder.to_owned(),
        passphrase: passphrase.map(str::to_owned),
        uses_keychain: false,
    })
}

fn put(store: &Store, login: &Login) {
    let _lock = store.lock().unwrap();
    store
        .change(|logins| {
            logins.insert(login.server.clone(), login.clone());
        })
        .unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn logins_are_encrypted_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a/b");
    let store = store(&folder, None);
    assert!(store.logins().unwrap().is_empty());
    let one = login("https://one.example/mcp", "token-one");
    let two = login("https://two.example/mcp", "token-two");
    put(&store, &one);
    put(&store, &two);
    assert_eq!(store.logins().unwrap()[&one.server], one);
    assert_eq!(store.logins().unwrap()[&two.server], two);
    assert_eq!(store.key_source().unwrap(), Some(KeySource::File));
    let text = fs::read_to_string(store.path()).unwrap();
    for secret in ["token-one", "client-s3cret", "one.example", "as.example"] {
        assert!(!text.contains(secret), "{secret}");
        assert!(!text.contains(&STANDARD.encode(secret)));
    }
    assert_eq!(mode(&store.path()), 0o600);
    assert_eq!(mode(&folder.join("key")), 0o600);
    assert_eq!(mode(&folder), 0o700);
}

#[test]
fn every_write_has_another_nonce() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), None);
    let one = login("https://one.example/mcp", "token-one");
    put(&store, &one);
    let first = store.read_sealed().unwrap().unwrap();
    put(&store, &one);
    let second = store.read_sealed().unwrap().unwrap();
    assert_ne!(first.nonce, second.nonce);
    assert_ne!(first.logins, second.logins);
}

#[test]
fn the_last_login_takes_the_file_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), None);
    put(&store, &login("https://one.example/mcp", "token-one"));
    store.change(BTreeMap::clear).unwrap();
    assert!(!store.path().exists());
    store.change(BTreeMap::clear).unwrap();
}

#[test]
fn a_passphrase_encrypts_and_another_one_does_not_decrypt() {
    let dir = tempfile::tempdir().unwrap();
    let one = login("https://one.example/mcp", "token-one");
    put(&store(dir.path(), Some("correct horse")), &one);
    let right = store(dir.path(), Some("correct horse"));
    assert_eq!(right.logins().unwrap()[&one.server], one);
    let wrong = store(dir.path(), Some("battery")).logins().unwrap_err();
    assert!(wrong.0.contains("the passphrase does not match"), "{wrong}");
    let none = store(dir.path(), None).logins().unwrap_err();
    assert!(none.0.contains("set MCPTEST_AUTH_PASSPHRASE"), "{none}");
}

#[test]
fn a_store_with_a_key_file_is_encrypted_again_under_a_passphrase() {
    let dir = tempfile::tempdir().unwrap();
    let one = login("https://one.example/mcp", "token-one");
    put(&store(dir.path(), None), &one);
    let secured = store(dir.path(), Some("correct horse"));
    put(&secured, &login("https://two.example/mcp", "token-two"));
    assert_eq!(secured.key_source().unwrap(), Some(KeySource::Passphrase));
    assert_eq!(secured.logins().unwrap().len(), 2);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), None);
    put(&store, &login("https://one.example/mcp", "token-one"));
    let key = dir.path().join("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = store.logins().unwrap_err();
    assert!(error.0.contains("chmod 600"), "{error}");
}

#[test]
fn damaged_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), None);
    put(&store, &login("https://one.example/mcp", "token-one"));
    let good = fs::read_to_string(store.path()).unwrap();
    let mut sealed: serde_json::Value = serde_json::from_str(&good).unwrap();
    let mut bytes = STANDARD.decode(sealed["logins"].as_str().unwrap()).unwrap();
    bytes[3] ^= 1;
    sealed["logins"] = STANDARD.encode(bytes).into();
    for (text, part) in [
        (sealed.to_string(), "the file is damaged"),
        (good.replace("\"file\"", "\"passphrase\""), "passphrase"),
        (
            good.replace("\"version\": 1", "\"version\": 2"),
            "version 2",
        ),
        ("{}".to_owned(), "is not a store of logins"),
        (String::new(), "is not a store of logins"),
        (
            good[..good.len() / 2].to_owned(),
            "is not a store of logins",
        ),
    ] {
        fs::write(store.path(), text).unwrap();
        let error = store.logins().unwrap_err();
        assert!(error.0.contains(part), "{part}: {error}");
        assert!(!error.0.contains("token-one"));
    }
    fs::write(store.path(), &good).unwrap();
    fs::remove_file(dir.path().join("key")).unwrap();
    assert!(store.logins().unwrap_err().0.contains("is gone"));
}
