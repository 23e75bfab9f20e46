//! Text that clients chose, made safe to be shown: a line of output says one thing, and nothing
//! that somebody wrote into a name or a reason can look like another line or steer a terminal.

/// The text with control characters spelled out, such as `\n`.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn no_text_of_a_client_makes_a_line_or_a_colour_of_its_own() {
        assert_eq!(shown("full\n  9  Released\u{1b}[31m"), "full\\n  9  Released\\u{1b}[31m");
        assert_eq!(shown("Größe 1"), "Größe 1");
    }
}
