//! Values as Python prints them, because Placement's messages show them so.

use serde_json::Value;

/// Messages show at most so many characters of a value: it may be as long as a body.
const LONGEST: usize = 1_000;

/// A JSON value as Python's `repr` shows it, cut off if it is very long.
#[must_use]
pub fn repr(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    cut(text)
}

/// A string as Python's `repr` shows it, cut off if it is very long.
#[must_use]
pub fn repr_str(value: &str) -> String {
    let mut text = String::new();
    write_str(value, &mut text);
    cut(text)
}

/// A number with a fraction as Python's `repr` shows it.
#[must_use]
pub fn repr_float(number: f64) -> String {
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A whole number as Python's `int` reads one: blanks around it, a sign, and single underscores between
/// digits may be there. Beyond 64 bits it is the end of their range.
#[must_use]
pub fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let parts = digits.split('_');
    if !parts.clone().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let value: i64 = parts.collect::<String>().parse().unwrap_or(i64::MAX);
    Some(if text.starts_with('-') { -value } else { value })
}

fn cut(mut text: String) -> String {
    if let Some((index, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(index);
        text.push_str("...");
    }
    text
}

fn write(value: &Value, text: &mut String) {
    if text.len() > 4 * LONGEST {
        return;
    }
    match value {
        Value::Null => text.push_str("None"),
        Value::Bool(true) => text.push_str("True"),
        Value::Bool(false) => text.push_str("False"),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => text.push_str(&repr_float(float)),
            _ => text.push_str(&number.to_string()),
        },
        Value::String(string) => write_str(string, text),
        Value::Array(items) => {
            text.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    text.push_str(", ");
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (n, (name, value)) in members.iter().enumerate() {
                if n > 0 {
                    text.push_str(", ");
                }
                write_str(name, text);
                text.push_str(": ");
                write(value, text);
            }
            text.push('}');
        }
    }
}

fn write_str(string: &str, text: &mut String) {
    let quote = if string.contains('\'') && !string.contains('"') { '"' } else { '\'' };
    text.push(quote);
    for c in string.chars().take(4 * LONGEST) {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c == quote => text.extend(['\\', c]),
            c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_look_like_pythons() {
        let value = json!({"a": [1, -2.5, 10.0, true, null], "it's": "say \"hi\"", "b": "it's"});
        assert_eq!(
            repr(&value),
            r#"{'a': [1, -2.5, 10.0, True, None], "it's": 'say "hi"', 'b': "it's"}"#
        );
        assert_eq!(repr_str("a'b\"c\n\u{1}☃"), r#"'a\'b"c\n\x01☃'"#);
        assert_eq!(repr_float(3.40282e38), "3.40282e+38");
        assert_eq!(repr_float(1e-5), "1e-05");
    }

    #[test]
    fn whole_numbers_are_read_as_python_reads_them() {
        for (text, number) in [
            ("7", 7),
            (" +7 ", 7),
            ("-1_000", -1000),
            ("007", 7),
            ("99999999999999999999", i64::MAX),
        ] {
            assert_eq!(integer(text), Some(number), "{text}");
        }
        for text in ["", "-", "_1", "1_", "1__0", "+ 1", "1.0", "0x1", "½", "1 0"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn long_values_are_cut_off() {
        let text = repr(&json!(vec!["☃"; 100_000]));
        assert_eq!(text.chars().count(), LONGEST + 3);
        assert!(repr_str(&"x".repeat(1 << 20)).len() < 2 * LONGEST);
    }
}
