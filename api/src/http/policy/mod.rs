//! Who may do what: one rule for each operation, Placement's defaults, and a policy file whose
//! rules take the place of the built-in ones.

mod defaults;
mod expression;

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use yaml_rust2::{Yaml, YamlLoader};

use super::auth::{Identity, Scope};
use super::failure::Failure;
use expression::{Check, Target};

/// Why a policy file cannot be used. The server does not start then: it must not run with other
/// rules than its operator believes.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read the policy file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is no YAML.
    #[error("the policy file {path} is not YAML: {source}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: yaml_rust2::ScanError,
    },
    /// The file is YAML, but no mapping of rule names to expressions.
    #[error("the policy file {0} is not a mapping of rule names to expressions")]
    Form(PathBuf),
    /// An expression that cannot be understood.
    #[error("policy rule {rule}: {reason}")]
    Expression {
        /// The rule's name.
        rule: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// All rules in effect.
#[derive(Debug)]
pub struct Policy {
    rules: FxHashMap<String, Check>,
}

impl Policy {
    /// The built-in rules, with those of a policy file in their place.
    ///
    /// Unless `enforce_new_defaults`, the role `admin` will do for every built-in rule, whatever
    /// it asks for; of the built-in ones only the reshaper's asks for another role.
    ///
    /// # Errors
    /// If the file cannot be read or one of its expressions cannot be understood.
    pub fn load(file: Option<&Path>, enforce_new_defaults: bool) -> Result<Self, PolicyError> {
        let mut rules = FxHashMap::default();
        for (rule, expression) in defaults::RULES {
            let mut check = parse(rule, expression)?;
            if !enforce_new_defaults {
                check = Check::Or(vec![check, Check::Role("admin".to_owned())]);
            }
            rules.insert((*rule).to_owned(), check);
        }
        if let Some(path) = file {
            for (rule, expression) in read(path)? {
                let check = parse(&rule, &expression)?;
                rules.insert(rule, check);
            }
        }
        Ok(Self { rules })
    }

    /// Checks a caller against a rule. `project` is the project that the request is about, where
    /// it is about one.
    ///
    /// # Errors
    /// Refused (status 403). Everything is for callers in the scope of a project only; in
    /// another one no rule of any policy file helps.
    pub fn check(
        &self,
        rule: &str,
        identity: &Identity,
        project: Option<&str>,
    ) -> Result<(), Failure> {
        if identity.scope != Scope::Project {
            return Err(Failure::forbidden(rule));
        }
        let target = Target { project };
        let allowed =
            self.rules.get(rule).is_some_and(|check| self.allows(check, identity, target, 0));
        if allowed {
            return Ok(());
        }
        Err(Failure::forbidden(format!("Policy does not allow {rule} to be performed.")))
    }

    fn allows(&self, check: &Check, identity: &Identity, target: Target<'_>, depth: usize) -> bool {
        // A rule that refers to itself, through others or not, allows nothing.
        const DEEPEST: usize = 32;
        if depth > DEEPEST {
            return false;
        }
        let deeper = |check: &Check| self.allows(check, identity, target, depth + 1);
        match check {
            Check::Always => true,
            Check::Never => false,
            Check::Role(role) => identity.has_role(role),
            Check::Rule(name) => self.rules.get(name).is_some_and(deeper),
            Check::OwnProject => target.project == Some(identity.project.as_str()),
            Check::Project(project) => *project == identity.project,
            Check::User(user) => *user == identity.user,
            Check::And(all) => all.iter().all(deeper),
            Check::Or(any) => any.iter().any(deeper),
            Check::Not(check) => !deeper(check),
        }
    }
}

fn parse(rule: &str, text: &str) -> Result<Check, PolicyError> {
    expression::parse(text)
        .map_err(|reason| PolicyError::Expression { rule: rule.to_owned(), reason })
}

fn read(path: &Path) -> Result<Vec<(String, String)>, PolicyError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
    let documents = YamlLoader::load_from_str(&text)
        .map_err(|source| PolicyError::Yaml { path: path.to_owned(), source })?;
    let form = || PolicyError::Form(path.to_owned());
    match documents.into_iter().next() {
        None | Some(Yaml::Null) => Ok(Vec::new()),
        Some(Yaml::Hash(entries)) => entries
            .into_iter()
            .map(|entry| match entry {
                (Yaml::String(rule), Yaml::String(expression)) => Ok((rule, expression)),
                _ => Err(form()),
            })
            .collect(),
        Some(_) => Err(form()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn caller(roles: &[&str]) -> Identity {
        Identity {
            user: "u".into(),
            project: "p".into(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            scope: Scope::Project,
        }
    }

    fn allowed(policy: &Policy, rule: &str, roles: &[&str], project: Option<&str>) -> bool {
        policy.check(rule, &caller(roles), project).is_ok()
    }

    #[test]
    fn the_defaults_are_for_admin_and_service() {
        let policy = Policy::load(None, true).expect("the defaults parse");
        for role in ["admin", "service"] {
            assert!(allowed(&policy, "placement:resource_providers:list", &[role], None));
        }
        assert!(!allowed(
            &policy,
            "placement:resource_providers:list",
            &["reader", "member"],
            None
        ));
    }

    #[test]
    fn a_reader_sees_the_usages_of_the_own_project() {
        let policy = Policy::load(None, true).expect("the defaults parse");
        assert!(allowed(&policy, "placement:usages", &["reader"], Some("p")));
        assert!(!allowed(&policy, "placement:usages", &["reader"], Some("q")));
        assert!(!allowed(&policy, "placement:usages", &["reader"], None));
    }

    #[test]
    fn the_reshaper_is_for_service_unless_old_defaults_count() {
        let new = Policy::load(None, true).expect("the defaults parse");
        assert!(!allowed(&new, "placement:reshaper:reshape", &["admin"], None));
        assert!(allowed(&new, "placement:reshaper:reshape", &["service"], None));
        let old = Policy::load(None, false).expect("the defaults parse");
        assert!(allowed(&old, "placement:reshaper:reshape", &["admin"], None));
    }

    #[test]
    fn a_file_replaces_rules_but_not_the_scope() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        writeln!(file, "# open\n\"placement:usages\": \"@\"\n\"placement:traits:list\": \"!\"")
            .expect("written");
        let policy = Policy::load(Some(file.path()), false).expect("it parses");
        assert!(allowed(&policy, "placement:usages", &[], None));
        assert!(!allowed(&policy, "placement:traits:list", &["admin"], None));
        let system = Identity { scope: Scope::System, ..caller(&["admin"]) };
        let refusal = policy.check("placement:usages", &system, None).expect_err("the wrong scope");
        assert_eq!(refusal.message, "placement:usages");
    }

    #[test]
    fn a_bad_file_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        writeln!(file, "\"placement:usages\": \"http://example.com\"").expect("written");
        assert!(matches!(
            Policy::load(Some(file.path()), true),
            Err(PolicyError::Expression { .. })
        ));
        assert!(matches!(
            Policy::load(Some(Path::new("/nonexistent")), true),
            Err(PolicyError::Read { .. })
        ));
    }
}
