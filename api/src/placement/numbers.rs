//! Numbers in bodies that a schema has checked: `10.0` is a whole number too.

use serde_json::Value;

/// A whole number, cut off at the ends of 64 bits.
#[must_use]
pub fn integer(value: &Value) -> i64 {
    // The conversion of a float saturates.
    value.as_i64().unwrap_or_else(|| value.as_f64().map_or(0, |float| float as i64))
}

/// A whole number that is not negative, cut off at the ends of 32 bits.
#[must_use]
pub fn unsigned(value: &Value) -> u32 {
    let number = integer(value);
    u32::try_from(number).unwrap_or(if number < 0 { 0 } else { u32::MAX })
}

/// A generation as a client gives it. One that no provider or consumer can have becomes the
/// largest, which none has either: it is a conflict, like any other that does not match.
#[must_use]
pub fn generation(value: &Value) -> u32 {
    u32::try_from(integer(value)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_cut_off_and_not_wrapped() {
        assert_eq!(integer(&json!(10.0)), 10);
        assert_eq!(unsigned(&json!(-1)), 0);
        assert_eq!(unsigned(&json!(1e30)), u32::MAX);
        assert_eq!(generation(&json!(-1)), u32::MAX);
        assert_eq!(generation(&json!(7)), 7);
    }
}
