//! Taking insignificant white space out of a document.

use crate::scan;

/// Appends `text` to `out` without the white space that stands between tokens, until `out` is longer than `enough`. Gives the
/// place in `text` that byte `enough` of `out` came from, or its end.
///
/// Nothing else changes, so that a text that is not JSON is not JSON afterwards and breaks at the same token: between two
/// characters that would grow together into one number or word, a blank stays.
pub(crate) fn strip(text: &[u8], out: &mut Vec<u8>, enough: usize) -> usize {
    let mut at = 0;
    while at < text.len() && out.len() <= enough {
        match scan::byte(text, at) {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                while let b' ' | b'\t' | b'\n' | b'\r' = scan::byte(text, at) {
                    at += 1;
                }
                if out.last().is_some_and(|before| grows(*before)) && grows(scan::byte(text, at)) {
                    out.push(b' ');
                }
            }
            b'"' => {
                // Behind a string that is none, nothing is white space any more.
                let end = scan::string(text, at + 1, &mut false).map_or(text.len(), |(end, _)| end);
                out.extend_from_slice(text.get(at..end).unwrap_or_default());
                at = end;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    at - (out.len().saturating_sub(enough)).min(at)
}

/// Whether the byte may be part of a number or word.
fn grows(byte: u8) -> bool {
    !matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',' | b'"' | 0)
}
