//! Names as parts of keys. A key may have letters, digits and `-/_=.`; the dot parts it.

use std::fmt::Write;

/// A name as one part of a key: what may not stand there becomes `=` and two hexadecimal digits for
/// each byte, and so does `=` itself.
pub fn part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            part.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(part, "={byte:02x}");
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn different_names_have_different_keys() {
        assert_eq!(part("CUSTOM_A-1"), "CUSTOM_A-1");
        assert_eq!(part("a.b=c d"), "a=2eb=3dc=20d");
        assert_eq!(part("ü"), "=c3=bc");
    }
}
