//! `resources=CLASS:amount[,CLASS:amount...]`.

use crate::http::failure::Failure;
use crate::schema::python;

/// An amount of a resource class.
pub type Amount = (String, i64);

const FORM: &str = "Badly formed resources parameter. Expected resources query string parameter in form: \
                    ?resources=VCPU:2,MEMORY_MB:1024. Got:";

/// Reads the value of a `resources` parameter. Of a class named twice the last amount counts.
/// Whether the classes exist is not looked at here.
///
/// # Errors
/// 400.
pub fn parse(value: &str) -> Result<Vec<Amount>, Failure> {
    if value.trim().is_empty() {
        return Err(Failure::bad_request(format!("{FORM} empty string.")));
    }
    let mut amounts: Vec<Amount> = Vec::new();
    for part in value.split(',') {
        let (class, amount) = parse_part(part)?;
        match amounts.iter_mut().find(|(known, _)| known == class) {
            Some(known) => known.1 = amount,
            None => amounts.push((class.to_owned(), amount)),
        }
    }
    Ok(amounts)
}

fn parse_part(part: &str) -> Result<(&str, i64), Failure> {
    let badly_formed = || Failure::bad_request(format!("{FORM} {part}."));
    let (class, amount) = part.split_once(':').ok_or_else(badly_formed)?;
    if amount.contains(':') {
        return Err(badly_formed());
    }
    let number = python::integer(amount).filter(|&number| number < i64::MAX).ok_or_else(|| {
        Failure::bad_request(format!(
            "Requested resource {class} expected positive integer amount. Got: {amount}."
        ))
    })?;
    if number < 1 {
        return Err(Failure::bad_request(format!(
            "Requested resource {class} requires amount >= 1. Got: {number}."
        )));
    }
    Ok((class, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(value: &str) -> String {
        parse(value).expect_err(value).message
    }

    #[test]
    fn amounts_are_read_and_the_last_of_a_class_counts() {
        let amounts = parse("VCPU:2,MEMORY_MB:1024,VCPU:3").expect("amounts");
        assert_eq!(amounts, [("VCPU".to_owned(), 3), ("MEMORY_MB".to_owned(), 1024)]);
        assert_eq!(parse("VCPU: +1_0").expect("an amount"), [("VCPU".to_owned(), 10)]);
    }

    #[test]
    fn the_form_is_explained() {
        assert!(refusal(" ").ends_with("?resources=VCPU:2,MEMORY_MB:1024. Got: empty string."));
        assert!(refusal("VCPU:1,DISK_GB").ends_with("Got: DISK_GB."));
        assert!(refusal("VCPU:1:2").ends_with("Got: VCPU:1:2."));
    }

    #[test]
    fn amounts_are_positive_integers() {
        assert_eq!(
            refusal("VCPU:fred"),
            "Requested resource VCPU expected positive integer amount. Got: fred."
        );
        assert_eq!(refusal("VCPU:-2"), "Requested resource VCPU requires amount >= 1. Got: -2.");
        assert!(refusal("VCPU:99999999999999999999").contains("expected positive integer amount"));
    }
}
