//! Dynamic client registration (RFC 7591).

use hyper::{Request, StatusCode};
use serde_json::{Value, json};

use crate::challenge::split_scopes;
use crate::client::{AuthMethod, Client};
use crate::error::AuthError;
use crate::metadata::string;
use crate::server_metadata::AuthorizationServer;
use crate::steps::Steps;
use crate::transport::{Transport, refused};

/// Registers this program at an authorization server, for one redirect address.
pub(crate) async fn register(
    transport: &Transport,
    server: &AuthorizationServer,
    redirect: &str,
    scopes: &[String],
    steps: &Steps,
) -> Result<Client, AuthError> {
    let Some(endpoint) = &server.registration_endpoint else {
        let message = "the authorization server has no dynamic registration: register a client \
                       there and set `client_id` (and `redirect_port`, if it allows one address \
                       only)";
        steps.failed("client", message);
        return Err(AuthError::new(message));
    };
    let action = format!("POST {endpoint} (registration)");
    let fail = |reason: &str, is_temporary: bool| {
        steps.failed(&action, reason);
        let message = format!("the client cannot be registered: {action}: {reason}");
        AuthError::lasting(message, is_temporary)
    };
    let method = AuthMethod::to_register(server.auth_methods_supported.as_deref());
    let mut grants = vec!["authorization_code"];
    if server.may_grant("refresh_token") {
        grants.push("refresh_token");
    }
    let mut metadata = json!({
        "client_name": "mcptest",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": method.name(),
    });
    let mut asked = (!scopes.is_empty()).then(|| scopes.to_vec());
    loop {
        match &asked {
            Some(scopes) => metadata["scope"] = scopes.join(" ").into(),
            None => drop(metadata.as_object_mut().map(|all| all.remove("scope"))),
        }
        let request = Request::post(endpoint)
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(metadata.to_string().into_bytes())
            .map_err(|error| fail(&error.to_string(), false))?;
        let response = transport
            .send(request)
            .await
            .map_err(|error| fail(&error.reason, error.is_temporary))?;
        if response.status() == StatusCode::BAD_REQUEST && asked.take().is_some() {
            // Some servers know other scopes than the protected resource lists.
            let reason = refused(response.status(), response.body());
            steps.skipped(&action, format!("{reason}; again without scopes"));
            continue;
        }
        if !response.status().is_success() {
            return Err(fail(&refused(response.status(), response.body()), false));
        }
        let client = read(response.body(), redirect, method);
        let mut client = client.map_err(|reason| fail(&reason, false))?;
        client.registered_scopes = client.registered_scopes.or(asked);
        steps.ok(action, format!("client `{}`", client.id));
        return Ok(client);
    }
}

fn read(body: &[u8], redirect: &str, asked: AuthMethod) -> Result<Client, String> {
    let Ok(Value::Object(object)) = serde_json::from_slice(body) else {
        return Err("the response is not a JSON object".to_owned());
    };
    let id = string(&object, "client_id")?
        .filter(|id| !id.is_empty())
        .ok_or("the response has no `client_id`")?;
    let secret = string(&object, "client_secret")?.filter(|secret| !secret.is_empty());
    let method = match string(&object, "token_endpoint_auth_method")? {
        Some(name) => AuthMethod::from_name(&name)
            .ok_or_else(|| format!("the client must use `{name}`, which is not supported"))?,
        None => asked,
    };
    if matches!(
        method,
        AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost
    ) && secret.is_none()
    {
        return Err(format!(
            "the client must use `{}`, and the response has no `client_secret`",
            method.name()
        ));
    }
    Ok(Client {
        id,
        secret,
        method,
        registered_redirect: Some(redirect.to_owned()),
        registered_scopes: string(&object, "scope")?.map(|scopes| split_scopes(&scopes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_decides_about_the_method() {
        let read = |body: &Value| read(body.to_string().as_bytes(), "r", AuthMethod::None);
        let client = read(&json!({"client_id": "a", "client_secret": "s"})).unwrap();
        assert_eq!(client.method, AuthMethod::None);
        let client = read(&json!({
            "client_id": "a", "client_secret": "s",
            "token_endpoint_auth_method": "client_secret_post",
        }))
        .unwrap();
        assert_eq!(client.method, AuthMethod::ClientSecretPost);
        for (body, part) in [
            (json!([]), "not a JSON object"),
            (json!({}), "no `client_id`"),
            (json!({"client_id": ""}), "no `client_id`"),
            (json!({"client_id": 7}), "`client_id` is not a string: 7"),
            (
                json!({"client_id": "a", "token_endpoint_auth_method": "tls_client_auth"}),
                "must use `tls_client_auth`",
            ),
            (
                json!({"client_id": "a", "token_endpoint_auth_method": "client_secret_basic"}),
                "no `client_secret`",
            ),
        ] {
            let reason = read(&body).unwrap_err();
            assert!(reason.contains(part), "{body}: {reason}");
        }
    }
}
