//! `WWW-Authenticate` challenges (RFC 9110) of the scheme `Bearer` (RFC 6750).

use std::collections::BTreeMap;

/// The part of a header that is read.
const MAX_BYTES: usize = 16 * 1024;

/// The parameters of a `Bearer` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The error code, such as `invalid_token` or `insufficient_scope`.
    pub(crate) error: Option<String>,
    /// The description of the error.
    pub(crate) error_description: Option<String>,
    /// The scopes that the request needs.
    pub(crate) scopes: Vec<String>,
    /// The address of the protected-resource metadata (RFC 9728).
    pub(crate) resource_metadata: Option<String>,
}

impl Challenge {
    /// The first `Bearer` challenge of these headers; `None` if there is none.
    pub(crate) fn bearer(headers: &[String]) -> Option<Self> {
        headers
            .iter()
            .flat_map(|header| parse(header))
            .find(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, mut parameters)| Self {
                error: parameters.remove("error"),
                error_description: parameters.remove("error_description"),
                scopes: split_scopes(&parameters.remove("scope").unwrap_or_default()),
                resource_metadata: parameters.remove("resource_metadata"),
            })
    }
}

/// The scopes of a list that is separated by spaces, each once.
pub(crate) fn split_scopes(list: &str) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in list.split_ascii_whitespace() {
        if !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

/// The challenges of a header: scheme and parameters. Anything that has another form is skipped.
fn parse(header: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut found: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let end = (0..=MAX_BYTES.min(header.len()))
        .rev()
        .find(|end| header.is_char_boundary(*end));
    let mut rest = Scanner(&header[..end.unwrap_or(0)]);
    loop {
        rest.skip(|c| c == ',' || c.is_ascii_whitespace());
        if rest.0.is_empty() {
            return found;
        }
        let name = rest.token();
        if name.is_empty() {
            rest.skip_one();
            continue;
        }
        rest.skip(|c| c.is_ascii_whitespace());
        if let Some(after) = rest.0.strip_prefix('=') {
            // A parameter, unless it is the padding of a token68.
            rest = Scanner(after);
            rest.skip(|c| c == '=' || c.is_ascii_whitespace());
            let value = rest.value();
            if let Some((_, parameters)) = found.last_mut() {
                parameters.entry(name.to_ascii_lowercase()).or_insert(value);
            }
        } else {
            found.push((name.to_owned(), BTreeMap::new()));
        }
    }
}

struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(skipped);
    }

    fn skip_one(&mut self) {
        let mut chars = self.0.chars();
        chars.next();
        self.0 = chars.as_str();
    }

    fn token(&mut self) -> &'a str {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let end = self.0.find(|c| !is_token(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        token
    }

    /// A quoted string or a token. A URL without quotes, which is not allowed, is read too.
    fn value(&mut self) -> String {
        let Some(quoted) = self.0.strip_prefix('"') else {
            let end = self.0.find(|c: char| c == ',' || c.is_ascii_whitespace());
            let (value, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
            self.0 = rest;
            return value.to_owned();
        };
        let mut value = String::new();
        let mut chars = quoted.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => value.extend(chars.next()),
                c => value.push(c),
            }
        }
        self.0 = chars.as_str();
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(header: &str) -> Option<Challenge> {
        Challenge::bearer(&[header.to_owned()])
    }

    #[test]
    fn parameters_are_read_with_and_without_quotes() {
        let challenge = bearer(
            r#"Bearer realm="a, \"b\"", error=insufficient_scope,error_description="say \\ it", scope="read write read" , Resource_Metadata="https://x/.well-known/y""#,
        )
        .unwrap();
        assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
        assert_eq!(challenge.error_description.as_deref(), Some("say \\ it"));
        assert_eq!(challenge.scopes, ["read", "write"]);
        assert_eq!(
            challenge.resource_metadata.as_deref(),
            Some("https://x/.well-known/y")
        );
        let unquoted = bearer("bearer resource_metadata=https://x/y?z=1").unwrap();
        assert_eq!(
            unquoted.resource_metadata.as_deref(),
            Some("https://x/y?z=1")
        );
    }

    #[test]
    fn other_schemes_are_skipped() {
        let both = r#"Negotiate abc==, Basic realm="x", Bearer scope="a""#;
        assert_eq!(bearer(both).unwrap().scopes, ["a"]);
        assert_eq!(bearer(r#"Basic realm="Bearer scope=x""#), None);
        assert_eq!(bearer("Bearer"), Some(Challenge::default()));
        assert_eq!(bearer(""), None);
        let headers = [r#"Basic realm="x""#.to_owned(), "Bearer error=e".to_owned()];
        assert_eq!(
            Challenge::bearer(&headers).unwrap().error.as_deref(),
            Some("e")
        );
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_a_panic(header in "(?s).{0,200}") {
            let _ = bearer(&header);
            let _ = bearer(&format!("Bearer {header}"));
        }

        #[test]
        fn quoted_values_are_read_back(value in "[ -~]{0,40}") {
            let escaped = value.replace('\\', r"\\").replace('"', r#"\""#);
            let challenge = bearer(&format!("Bearer a=b, error=\"{escaped}\", scope=x")).unwrap();
            prop_assert_eq!(challenge.error.as_deref(), Some(value.as_str()));
            prop_assert_eq!(challenge.scopes, ["x"]);
        }
    }
}
