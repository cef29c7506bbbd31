//! "did you mean": the nearest of a few known names.

/// The known name that `name` was most likely meant to be; `None` where none is near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ` (did you mean …?)`, or nothing.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |candidate| format!(" (did you mean `{candidate}`?)"))
}

/// How many characters must be inserted, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut previous: Option<char> = None;
    for (i, x) in a.chars().take(64).enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |cells: &[usize], place: usize| cells.get(place).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&row, j) + usize::from(x != *y);
            let mut best = replaced.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = j > 0 && previous == Some(*y) && b.get(j - 1) == Some(&x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
        previous = Some(x);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_is_recognised_and_a_foreign_word_is_not() {
        let known = ["version", "data_dir", "sources", "relay", "pipelines"];
        assert_eq!(nearest("versoin", known), Some("version"));
        assert_eq!(nearest("pipeline", known), Some("pipelines"));
        assert_eq!(nearest("datadir", known), Some("data_dir"));
        assert_eq!(nearest("destination", known), None);
    }
}
