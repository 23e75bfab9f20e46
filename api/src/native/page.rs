//! What the pages of lists have in common.

use std::str::FromStr;

use crate::http::failure::Failure;

/// Rows of a page, unless the client says how many.
const ROWS: usize = 1_000;
/// The most rows of a page.
const MOST_ROWS: usize = 10_000;

/// Which page.
#[derive(Debug)]
pub(super) struct Page<K> {
    /// The key of the last row of the page before; none: the first page.
    pub(super) after: Option<K>,
    /// The most rows.
    pub(super) limit: usize,
}

impl<K> Default for Page<K> {
    fn default() -> Self {
        Self { after: None, limit: ROWS }
    }
}

impl<K: FromStr> Page<K> {
    /// Takes `after` or `limit`; false: the parameter is another one.
    ///
    /// # Errors
    /// 400.
    pub(super) fn take(&mut self, name: &str, text: &str) -> Result<bool, Failure> {
        match name {
            "after" => self.after = Some(value(name, text)?),
            "limit" => self.limit = value::<usize>(name, text)?.clamp(1, MOST_ROWS),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The value of a parameter.
///
/// # Errors
/// 400.
pub(super) fn value<T: FromStr>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure::bad_request(format!("{name} cannot be {text}.")))
}

/// 400 for a parameter that there is not.
pub(super) fn no_filter(name: &str) -> Failure {
    Failure::bad_request(format!("There is no filter {name}."))
}

/// The rows of a page out of all: those after the key, in the order of keys, and the key after
/// which there are more.
pub(super) fn cut<K: Ord + Copy, T>(
    page: &Page<K>,
    all: impl Iterator<Item = (K, T)>,
) -> (Vec<(K, T)>, Option<K>) {
    let mut rows: Vec<(K, T)> =
        all.filter(|(key, _)| page.after.is_none_or(|after| *key > after)).collect();
    let more = rows.len() > page.limit;
    if more {
        // Only the rows of this page need to be sorted.
        rows.select_nth_unstable_by_key(page.limit, |(key, _)| *key);
        rows.truncate(page.limit);
    }
    rows.sort_unstable_by_key(|(key, _)| *key);
    let next = rows.last().filter(|_| more).map(|(key, _)| *key);
    (rows, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_gap() {
        let all = || [5, 3, 9, 1, 7].into_iter().map(|key| (key, ()));
        let (mut page, mut seen) = (Page { after: None, limit: 2 }, Vec::new());
        loop {
            let (rows, next) = cut(&page, all());
            seen.extend(rows.into_iter().map(|(key, ())| key));
            if next.is_none() {
                break;
            }
            page.after = next;
        }
        assert_eq!(seen, [1, 3, 5, 7, 9]);
    }
}
