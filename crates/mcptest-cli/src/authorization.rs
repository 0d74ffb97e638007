//! Authorization of servers: from suites and flags to sources of credentials.
//!
//! A source costs nothing until a server asks for a token: neither the store nor the keychain is
//! read before.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use mcptest_auth::{AuthConfig, Grant, OAuth, OAuthOptions, SecretVariable, Store, StoreOptions};
use mcptest_http::credentials::Credentials;
use mcptest_redact::redact::is_searchable;
use mcptest_runner::{InspectSettings, ServerCredentials};
use mcptest_suite::suite::{AuthGrant, EnvSecret, HttpAddress, Server, ServerAuth};

use mcptest_yaml::write::escape_references;
use serde_json::{Map, Value};

use crate::cli::{AuthType, UrlAuthArgs};
use crate::secrets;

/// The variables that set where logins are kept, and how they are encrypted.
pub const VARIABLES: [(&str, &str); 3] = [
    (
        FOLDER,
        "the folder of the logins; default: in the user's data",
    ),
    (
        PASSPHRASE,
        "encrypt logins with a key that is derived from it",
    ),
    (KEYCHAIN, "`0`: never ask the system's keychain for the key"),
];
const FOLDER: &str = "MCPTEST_AUTH_DIR";
const PASSPHRASE: &str = "MCPTEST_AUTH_PASSPHRASE";
const KEYCHAIN: &str = "MCPTEST_AUTH_KEYCHAIN";

/// The store of logins; `None` if there is no folder for it.
pub fn store() -> Option<Store> {
    let set = |name: &str| {
        let value = std::env::var_os(name)?;
        (!value.is_empty()).then_some(value)
    };
    let folder = set(FOLDER).map(PathBuf::from).or_else(|| {
        let data = set("XDG_DATA_HOME").map(PathBuf::from);
        let data = data.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/share")));
        Some(data?.join("mcptest"))
    })?;
    let passphrase = std::env::var(PASSPHRASE)
        .ok()
        .filter(|value| !value.is_empty());
    secrets::learn(passphrase.clone());
    let may_ask = std::env::var(KEYCHAIN).as_deref() != Ok("0");
    let has_session = cfg!(target_os = "macos") || set("DBUS_SESSION_BUS_ADDRESS").is_some();
    Some(Store::new(StoreOptions {
        folder,
        passphrase,
        uses_keychain: may_ask && has_session,
    }))
}

/// Masks a secret in all later output. A short value or a word stays: masking it would let an
/// authorization server make reports unreadable.
pub fn hide(secret: &str) {
    if is_searchable(secret) {
        secrets::learn([secret.to_owned()]);
    }
}

/// Options for a source of credentials.
pub fn options() -> OAuthOptions {
    OAuthOptions {
        store: store(),
        on_secret: Arc::new(hide),
        ..OAuthOptions::default()
    }
}

/// The settings of a server of a suite, if it has `auth:`.
pub fn declared(name: &str, server: &Server) -> Option<AuthConfig> {
    let http = server.http.as_ref()?;
    let auth = http.auth.as_deref()?;
    let mut config = config(http, auth);
    config.login_command = format!("mcptest auth login {name}");
    Some(config)
}

fn config(http: &HttpAddress, auth: &ServerAuth) -> AuthConfig {
    let secret = |secret: &EnvSecret| SecretVariable {
        name: secret.variable.clone(),
        value: secret.value.clone(),
    };
    let grant = match auth.grant {
        AuthGrant::ClientCredentials => Grant::ClientCredentials,
        AuthGrant::AuthorizationCode => Grant::AuthorizationCode,
        AuthGrant::RefreshToken => {
            let token = auth.refresh_token.as_ref().map(secret);
            Grant::RefreshToken(token.unwrap_or_default())
        }
    };
    AuthConfig {
        client_id: auth.client_id.clone(),
        client_secret: auth.client_secret.as_ref().map(secret),
        private_key_file: auth.private_key_file.clone(),
        scopes: auth.scopes.clone(),
        issuer: auth.issuer.clone(),
        resource: auth.resource.clone(),
        redirect_port: auth.redirect_port,
        ..AuthConfig::new(&http.url, grant)
    }
}

/// Sources of credentials for the servers of suites. Servers with the same settings share one, so
/// that suites share tokens.
pub fn of_suites() -> ServerCredentials {
    let made: Mutex<HashMap<AuthConfig, Arc<OAuth>>> = Mutex::default();
    ServerCredentials::new(move |name, server| {
        let config = declared(name, server)?;
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        let source = made
            .entry(config.clone())
            .or_insert_with(|| Arc::new(OAuth::new(config, options())));
        Some(Arc::clone(source) as Arc<dyn Credentials>)
    })
}

/// One source of credentials, for the only server of a session.
pub fn only(source: Option<&Arc<OAuth>>) -> ServerCredentials {
    let source = source.cloned();
    ServerCredentials::new(move |_, _| {
        let source = source.clone()?;
        Some(source as Arc<dyn Credentials>)
    })
}

/// Settings for a server outside of a run, with its credentials: declared in its suite, or by the
/// flags of its address. A token that the user passes as a header excludes other credentials.
///
/// # Errors
/// Flags that do not fit together.
pub fn settings(
    name: &str,
    server: &Server,
    flags: Option<&UrlAuthArgs>,
    settings: &InspectSettings,
) -> Result<InspectSettings, String> {
    let http = server.http.as_ref().filter(|http| !has_token(http));
    let source = match (http, flags) {
        (None, _) => None,
        (Some(http), Some(flags)) => Some(of_url(&http.url, flags, false)?),
        (Some(_), None) => {
            declared(name, server).map(|config| Arc::new(OAuth::new(config, options())))
        }
    };
    Ok(InspectSettings {
        credentials: only(source.as_ref()),
        ..settings.clone()
    })
}

/// The flags as `auth:` of a suite has them, for a server that required a token.
pub fn as_suite(args: &UrlAuthArgs) -> Value {
    let grant = args.auth.unwrap_or(AuthType::AuthorizationCode);
    let mut auth = Map::new();
    let grant = match grant {
        AuthType::ClientCredentials => "client_credentials",
        AuthType::AuthorizationCode => "authorization_code",
        AuthType::RefreshToken => "refresh_token",
    };
    auth.insert("type".to_owned(), grant.into());
    let file = args.private_key_file.as_ref();
    let file = file.map(|file| file.display().to_string());
    for (key, value) in [
        ("client_id", args.client_id.as_ref()),
        ("client_secret_env", args.client_secret_env.as_ref()),
        ("private_key_file", file.as_ref()),
        ("refresh_token_env", args.refresh_token_env.as_ref()),
        ("issuer", args.issuer.as_ref()),
        ("resource", args.resource.as_ref()),
    ] {
        if let Some(value) = value {
            auth.insert(key.to_owned(), escape_references(value).into());
        }
    }
    if !args.scope.is_empty() {
        auth.insert("scopes".to_owned(), args.scope.clone().into());
    }
    if let Some(port) = args.redirect_port {
        auth.insert("redirect_port".to_owned(), port.into());
    }
    Value::Object(auth)
}

/// Returns true if the user gives a token.
pub fn has_token(http: &HttpAddress) -> bool {
    let mut names = http.headers.iter().map(|(name, _)| name);
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// The source of credentials of an address: by the flags, else of a login, if there is one.
///
/// # Errors
/// Flags that do not fit together.
pub fn of_url(url: &str, args: &UrlAuthArgs, explains: bool) -> Result<Arc<OAuth>, String> {
    let (config, is_written) = url_config(url, args)?;
    let options = OAuthOptions {
        explains,
        waits_for_refusal: !is_written,
        ..options()
    };
    Ok(Arc::new(OAuth::new(config, options)))
}

/// The settings of an address, and true if flags name its grant.
///
/// # Errors
/// Flags that do not fit together.
pub fn url_config(url: &str, args: &UrlAuthArgs) -> Result<(AuthConfig, bool), String> {
    check(args)?;
    let secret = |name: &String| {
        let value = std::env::var(name).ok();
        let value = value.map(|value| value.trim().to_owned());
        let secret = SecretVariable {
            name: name.clone(),
            value: value.filter(|value| !value.is_empty()),
        };
        secrets::learn(secret.value.clone());
        secret
    };
    let grant = match args.auth {
        Some(AuthType::ClientCredentials) => Grant::ClientCredentials,
        Some(AuthType::RefreshToken) => {
            let token = args.refresh_token_env.as_ref().map(secret);
            Grant::RefreshToken(token.unwrap_or_default())
        }
        Some(AuthType::AuthorizationCode) | None => Grant::AuthorizationCode,
    };
    let config = AuthConfig {
        client_id: args.client_id.clone(),
        client_secret: args.client_secret_env.as_ref().map(secret),
        private_key_file: args.private_key_file.clone(),
        scopes: args.scope.clone(),
        issuer: args.issuer.clone(),
        resource: args.resource.clone(),
        redirect_port: args.redirect_port,
        ..AuthConfig::new(url, grant)
    };
    Ok((config, args.auth.is_some()))
}

/// Rejects flags that do not fit together, as the suite rejects keys.
fn check(args: &UrlAuthArgs) -> Result<(), String> {
    let has_secret = args.client_secret_env.is_some();
    let has_key = args.private_key_file.is_some();
    let problem = match args.auth {
        Some(AuthType::ClientCredentials | AuthType::RefreshToken) if args.client_id.is_none() => {
            "this `--auth` needs `--client-id`"
        }
        Some(AuthType::ClientCredentials) if !has_secret && !has_key => {
            "`--auth client_credentials` needs `--client-secret-env` or `--private-key-file`"
        }
        Some(AuthType::RefreshToken) if args.refresh_token_env.is_none() => {
            "`--auth refresh_token` needs `--refresh-token-env`"
        }
        Some(AuthType::ClientCredentials | AuthType::AuthorizationCode) | None
            if args.refresh_token_env.is_some() =>
        {
            "`--refresh-token-env` needs `--auth refresh_token`"
        }
        None if has_secret || has_key => {
            "`--client-secret-env` and `--private-key-file` need `--auth`: \
             `--auth client_credentials`"
        }
        _ if has_secret && has_key => {
            "`--client-secret-env` and `--private-key-file` cannot both be given"
        }
        _ => return Ok(()),
    };
    Err(problem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_do_not_fit_together_are_named() {
        let problem = |args: UrlAuthArgs| check(&args).err();
        let secret = Some("S".to_owned());
        let id = Some("id".to_owned());
        assert_eq!(problem(UrlAuthArgs::default()), None);
        let fine = UrlAuthArgs {
            auth: Some(AuthType::ClientCredentials),
            client_id: id.clone(),
            client_secret_env: secret.clone(),
            ..UrlAuthArgs::default()
        };
        assert_eq!(problem(fine.clone()), None);
        for (args, part) in [
            (
                UrlAuthArgs {
                    client_id: None,
                    ..fine.clone()
                },
                "--client-id",
            ),
            (
                UrlAuthArgs {
                    client_secret_env: None,
                    ..fine.clone()
                },
                "--private-key-file",
            ),
            (
                UrlAuthArgs {
                    private_key_file: Some("k".into()),
                    ..fine.clone()
                },
                "cannot both",
            ),
            (
                UrlAuthArgs {
                    auth: None,
                    ..fine.clone()
                },
                "need `--auth`",
            ),
            (
                UrlAuthArgs {
                    auth: Some(AuthType::RefreshToken),
                    ..fine.clone()
                },
                "needs `--refresh-token-env`",
            ),
            (
                UrlAuthArgs {
                    refresh_token_env: secret,
                    ..fine
                },
                "needs `--auth refresh_token`",
            ),
        ] {
            let found = problem(args).unwrap_or_default();
            assert!(found.contains(part), "{part}: {found}");
        }
    }

    #[test]
    fn a_server_cannot_mask_words_of_reports() {
        assert!(!is_searchable("passed"));
        assert!(!is_searchable("FAIL"));
        assert!(is_searchable("eyJhbGciOi"));
    }
}
