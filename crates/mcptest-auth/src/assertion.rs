//! Client assertions: JWTs that prove the possession of a private key (RFC 7523).

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::SigningKey;
use serde_json::json;

use crate::error::AuthError;

/// The life of an assertion. Each is used once, immediately.
const LIFETIME_SECONDS: u64 = 300;

/// The largest key file.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// The value of `client_assertion_type`.
pub(crate) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The algorithms, by the scheme that signs, with the length of one number of a signature of an
/// elliptic curve.
const ALGORITHMS: [(SignatureScheme, &str, Option<usize>); 4] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, "ES256", Some(32)),
    (SignatureScheme::ECDSA_NISTP384_SHA384, "ES384", Some(48)),
    (SignatureScheme::RSA_PKCS1_SHA256, "RS256", None),
    (SignatureScheme::ED25519, "EdDSA", None),
];

/// A private key that signs assertions.
pub(crate) struct AssertionKey {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
    algorithm: &'static str,
    /// The length of one number of the signature.
    number: Option<usize>,
}

impl AssertionKey {
    /// Reads a key from a PEM file: RSA, P-256, P-384 or Ed25519.
    pub(crate) fn read(path: &Path) -> Result<Self, AuthError> {
        let fail = |reason: String| {
            AuthError::new(format!(
                "the private key {} cannot be used: {reason}",
                path.display()
            ))
        };
        let size = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?;
        if size.len() > MAX_KEY_BYTES {
            return Err(fail("it is too large".to_owned()));
        }
        let pem = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
        Self::parse(&pem).map_err(fail)
    }

    fn parse(pem: &[u8]) -> Result<Self, String> {
        let der = PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
            let text = String::from_utf8_lossy(pem);
            if text.contains("ENCRYPTED") {
                "it is encrypted; decrypt it with `openssl pkcs8 -in KEY -out PLAIN`"
            } else {
                "it is not a PEM file with a private key"
            }
            .to_owned()
        })?;
        let unsupported = || "it must be an RSA, P-256, P-384 or Ed25519 key".to_owned();
        let key = any_supported_type(&der).map_err(|_| unsupported())?;
        ALGORITHMS
            .into_iter()
            .find(|(scheme, ..)| key.choose_scheme(&[*scheme]).is_some())
            .map(|(scheme, algorithm, number)| Self {
                key: Arc::clone(&key),
                scheme,
                algorithm,
                number,
            })
            .ok_or_else(unsupported)
    }

    /// An assertion of a client for an authorization server.
    pub(crate) fn sign(&self, client_id: &str, issuer: &str) -> Result<String, AuthError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let mut id = [0; 16];
        let failed = || AuthError::new("the private key cannot sign");
        SystemRandom::new().fill(&mut id).map_err(|_| failed())?;
        let header = json!({"alg": self.algorithm, "typ": "JWT"});
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": issuer,
            "jti": URL_SAFE_NO_PAD.encode(id),
            "iat": now,
            "exp": now + LIFETIME_SECONDS,
        });
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signer = self.key.choose_scheme(&[self.scheme]);
        let signature = signer
            .and_then(|signer| signer.sign(signed.as_bytes()).ok())
            .ok_or_else(failed)?;
        let signature = match self.number {
            Some(length) => fixed(&signature, length).ok_or_else(failed)?,
            None => signature,
        };
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The two numbers of a signature of an elliptic curve, each with a fixed length. TLS writes them
/// as ASN.1: a sequence of two integers without leading zeros.
fn fixed(der: &[u8], length: usize) -> Option<Vec<u8>> {
    let (sequence, rest) = element(der, 0x30)?;
    let (r, tail) = element(sequence, 0x02)?;
    let (s, end) = element(tail, 0x02)?;
    if !rest.is_empty() || !end.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(2 * length);
    for number in [r, s] {
        let start = number.iter().position(|byte| *byte != 0)?;
        let digits = &number[start..];
        out.extend(std::iter::repeat_n(0, length.checked_sub(digits.len())?));
        out.extend_from_slice(digits);
    }
    Some(out)
}

/// The content of an ASN.1 element with this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest)
        }
        _ => return None,
    };
    if found != tag || rest.len() < length {
        return None;
    }
    Some(rest.split_at(length))
}

#[cfg(test)]
mod tests {
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, UnparsedPublicKey, VerificationAlgorithm,
    };

    use super::*;

    fn pem(label: &str, der: &[u8]) -> Vec<u8> {
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes()
    }

    fn claims(token: &str) -> serde_json::Value {
        let part = token.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    fn verify(token: &str, algorithm: &'static dyn VerificationAlgorithm, key: &[u8]) {
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(algorithm, key)
            .verify(signed.as_bytes(), &signature)
            .unwrap();
    }

    #[test]
    fn assertions_of_an_elliptic_curve_verify() {
        use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        let key = AssertionKey::parse(&pem("PRIVATE KEY", pkcs8.as_ref())).unwrap();
        // Numbers with leading zeros are rare: one in 128 signatures has one.
        for _ in 0..600 {
            let token = key.sign("client", "https://as.example").unwrap();
            verify(&token, &ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        }
        let token = key.sign("client", "https://as.example").unwrap();
        let claims = claims(&token);
        assert_eq!(
            (&claims["iss"], &claims["sub"]),
            (&json!("client"), &json!("client"))
        );
        assert_eq!(claims["aud"], "https://as.example");
        assert_eq!(
            claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(),
            300
        );
        assert!(token.starts_with(&URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","typ":"JWT"}"#)));
    }

    #[test]
    fn assertions_of_ed25519_verify() {
        let random = SystemRandom::new();
        let pkcs8 = ring::signature::Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = ring::signature::Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let key = AssertionKey::parse(&pem("PRIVATE KEY", pkcs8.as_ref())).unwrap();
        let token = key.sign("client", "https://as.example").unwrap();
        verify(&token, &ED25519, pair.public_key().as_ref());
    }

    #[test]
    fn unusable_keys_are_explained() {
        let reason = |pem: &[u8]| AssertionKey::parse(pem).err().unwrap();
        assert!(reason(b"hello").contains("not a PEM file"));
        assert!(reason(&pem("ENCRYPTED PRIVATE KEY", b"x")).contains("openssl pkcs8"));
        assert!(reason(&pem("PRIVATE KEY", b"x")).contains("must be an RSA"));
        let missing = AssertionKey::read(Path::new("/nonexistent/key.pem")).err();
        assert!(missing.unwrap().message.contains("/nonexistent/key.pem"));
    }
}
