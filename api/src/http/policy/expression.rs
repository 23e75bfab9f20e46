//! The part of oslo.policy's expressions that Placement's policies use: `@`, `!`, `role:`,
//! `rule:`, `project_id:`, `user_id:`, `and`, `or`, `not` and parentheses. Anything else is an
//! error when the file is read, not a silent "no" later.

/// A parsed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// `@`: anybody who is authenticated.
    Always,
    /// `!`: nobody.
    Never,
    /// `role:NAME`, in lower case.
    Role(String),
    /// `rule:NAME`: what another rule says.
    Rule(String),
    /// `project_id:%(project_id)s`: the request is about the caller's own project.
    OwnProject,
    /// `project_id:ID`: the caller acts in that project.
    Project(String),
    /// `user_id:ID`: the caller is that user.
    User(String),
    /// All of them.
    And(Vec<Check>),
    /// Any of them.
    Or(Vec<Check>),
    /// Not that one.
    Not(Box<Check>),
}

/// What a request is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
    /// The project named in the request.
    pub project: Option<&'a str>,
}

/// Parses an expression. An empty one allows everybody, as in oslo.policy.
///
/// # Errors
/// What cannot be understood, in words.
pub fn parse(text: &str) -> Result<Check, String> {
    let words = words(text);
    if words.is_empty() {
        return Ok(Check::Always);
    }
    let mut parser = Parser { words: &words, depth: 0 };
    let check = parser.either()?;
    match parser.words.first() {
        None => Ok(check),
        Some(word) => Err(format!("unexpected {word:?} in {text:?}")),
    }
}

fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for mut word in text.split_whitespace() {
        while let Some(rest) = word.strip_prefix('(') {
            words.push("(");
            word = rest;
        }
        // The closing parenthesis of `%(project_id)s` is none of ours: it does not end the word.
        let bare = word.trim_end_matches(')');
        if !bare.is_empty() {
            words.push(bare);
        }
        words.extend(std::iter::repeat_n(")", word.len() - bare.len()));
    }
    words
}

struct Parser<'a> {
    words: &'a [&'a str],
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, wanted: &str) -> bool {
        let found = self.words.first().is_some_and(|word| word.eq_ignore_ascii_case(wanted));
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn either(&mut self) -> Result<Check, String> {
        let mut any = vec![self.both()?];
        while self.take("or") {
            any.push(self.both()?);
        }
        Ok(if any.len() == 1 { any.swap_remove(0) } else { Check::Or(any) })
    }

    fn both(&mut self) -> Result<Check, String> {
        let mut all = vec![self.single()?];
        while self.take("and") {
            all.push(self.single()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Check::And(all) })
    }

    fn single(&mut self) -> Result<Check, String> {
        const DEEPEST: usize = 32;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("nested too deeply".to_owned());
        }
        let check = if self.take("not") {
            Check::Not(Box::new(self.single()?))
        } else if self.take("(") {
            let inner = self.either()?;
            if !self.take(")") {
                return Err("a closing parenthesis is missing".to_owned());
            }
            inner
        } else {
            self.leaf()?
        };
        self.depth -= 1;
        Ok(check)
    }

    fn leaf(&mut self) -> Result<Check, String> {
        let (&word, rest) = self.words.split_first().ok_or("it ends too early")?;
        self.words = rest;
        let Some((kind, value)) = word.split_once(':') else {
            return match word {
                "@" => Ok(Check::Always),
                "!" => Ok(Check::Never),
                other => Err(format!("unknown check {other:?}")),
            };
        };
        match (kind, value) {
            ("role", role) => Ok(Check::Role(role.to_lowercase())),
            ("rule", rule) => Ok(Check::Rule(rule.to_owned())),
            ("project_id", "%(project_id)s") => Ok(Check::OwnProject),
            ("project_id" | "user_id", value) if value.contains("%(") => {
                Err(format!("unknown check {word:?}"))
            }
            ("project_id", project) => Ok(Check::Project(project.to_owned())),
            ("user_id", user) => Ok(Check::User(user.to_owned())),
            _ => Err(format!("unknown check {word:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Check {
        Check::Role(name.to_owned())
    }

    #[test]
    fn and_binds_closer_than_or() {
        let check = parse("role:a or role:B and not role:c");
        let both = Check::And(vec![role("b"), Check::Not(Box::new(role("c")))]);
        assert_eq!(check, Ok(Check::Or(vec![role("a"), both])));
    }

    #[test]
    fn parentheses_group() {
        let check = parse("(role:a or (role:b)) and project_id:%(project_id)s");
        let either = Check::Or(vec![role("a"), role("b")]);
        assert_eq!(check, Ok(Check::And(vec![either, Check::OwnProject])));
        let own = parse("(role:reader and project_id:%(project_id)s)");
        assert_eq!(own, Ok(Check::And(vec![role("reader"), Check::OwnProject])));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for text in [
            "role:a or",
            "(role:a",
            "role:a)",
            "http://x",
            "maybe",
            "user_id:%(user_id)s",
            "role:a role:b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"not ".repeat(100_000)).is_err());
    }

    #[test]
    fn an_empty_expression_allows() {
        assert_eq!(parse(""), Ok(Check::Always));
        assert_eq!(parse(" @ "), Ok(Check::Always));
        assert_eq!(parse("!"), Ok(Check::Never));
    }
}
