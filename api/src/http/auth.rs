//! Who is calling: the `noauth2` strategy, which believes everything a client says about
//! itself. It is what Placement uses in its own tests and behind a proxy that has authenticated.

use http::HeaderMap;
use http::header::HeaderValue;

/// What a caller's token was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One project: the only scope in which Placement's operations are allowed.
    Project,
    /// The whole system (`openstack-system-scope`).
    System,
    /// A domain (`x-domain-id`).
    Domain,
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's id.
    pub user: String,
    /// The id of the project that the caller acts in.
    pub project: String,
    /// The roles, in lower case: roles are compared without regard to case.
    pub roles: Vec<String>,
    /// What the token was made for.
    pub scope: Scope,
}

impl Identity {
    /// Whether the caller has a role (given in lower case). No role implies another.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own == role)
    }
}

/// Reads the caller from the headers; none if there is no `x-auth-token`, which means 401. An
/// empty token is enough.
#[must_use]
pub fn noauth2(headers: &HeaderMap) -> Option<Identity> {
    let token = text(headers, "x-auth-token")?;
    let (user, project) = match token.split_once(':') {
        Some((user, project)) if !project.is_empty() => (user, project),
        Some((user, _)) => (user, user),
        None => (token, token),
    };
    let project = text(headers, "x-project-id").unwrap_or(project);
    Some(Identity {
        user: user.to_owned(),
        project: project.to_owned(),
        roles: roles(headers, user),
        scope: scope(headers),
    })
}

/// The caller of a request that needs none.
#[must_use]
pub fn nobody() -> Identity {
    Identity {
        user: String::new(),
        project: String::new(),
        roles: Vec::new(),
        scope: Scope::Project,
    }
}

fn roles(headers: &HeaderMap, user: &str) -> Vec<String> {
    match text(headers, "x-roles") {
        Some(roles) => {
            let roles = roles.split(',').map(str::trim).filter(|role| !role.is_empty());
            roles.map(str::to_lowercase).collect()
        }
        None if user == "admin" => vec!["admin".to_owned()],
        None => Vec::new(),
    }
}

fn scope(headers: &HeaderMap) -> Scope {
    if text(headers, "openstack-system-scope").is_some_and(|scope| !scope.is_empty()) {
        Scope::System
    } else if text(headers, "x-domain-id").is_some() {
        Scope::Domain
    } else {
        Scope::Project
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn caller(pairs: &[(&'static str, &'static str)]) -> Option<Identity> {
        let headers = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        noauth2(&headers)
    }

    #[test]
    fn no_token_is_nobody_and_an_empty_one_is_somebody() {
        assert_eq!(caller(&[]), None);
        assert!(caller(&[("x-auth-token", "")]).is_some());
    }

    #[test]
    fn the_project_defaults_to_the_user() {
        for token in ["admin", "admin:"] {
            let identity = caller(&[("x-auth-token", token)]).expect("a caller");
            assert_eq!((identity.user.as_str(), identity.project.as_str()), ("admin", "admin"));
        }
        let identity = caller(&[("x-auth-token", "u:p:q")]).expect("a caller");
        assert_eq!((identity.user.as_str(), identity.project.as_str()), ("u", "p:q"));
    }

    #[test]
    fn only_the_user_admin_has_a_role_by_default() {
        let admin = caller(&[("x-auth-token", "admin")]).expect("a caller");
        assert!(admin.has_role("admin"));
        let user = caller(&[("x-auth-token", "user")]).expect("a caller");
        assert!(user.roles.is_empty());
        let demoted =
            caller(&[("x-auth-token", "admin"), ("x-roles", "Reader , ")]).expect("a caller");
        assert_eq!(demoted.roles, ["reader"]);
    }

    #[test]
    fn scopes_come_from_headers() {
        let scope = |name, value| caller(&[("x-auth-token", "a"), (name, value)]).map(|c| c.scope);
        assert_eq!(scope("openstack-system-scope", "all"), Some(Scope::System));
        assert_eq!(scope("openstack-system-scope", ""), Some(Scope::Project));
        assert_eq!(scope("x-domain-id", "default"), Some(Scope::Domain));
    }
}
