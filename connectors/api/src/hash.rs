//! Hashes that several connectors need: never written twice.

use sha2::{Digest, Sha256};

/// The place of a key among partitions: the first four bytes of SHA-256 of its UTF-8 text, big-endian.
pub fn key_hash(key: &str) -> u32 {
    let digest = Sha256::digest(key.as_bytes());
    digest.iter().take(4).fold(0, |hash, byte| hash << 8 | u32::from(*byte))
}

/// The partition of a key hash among `count`: `(hash × count) >> 32`.
pub fn partition(hash: u32, count: u32) -> u32 {
    ((u64::from(hash) * u64::from(count)) >> 32) as u32
}

/// SHA-256 over a document's [canonical form](crate::canonical::content), or over its bytes where it is not JSON.
pub fn content_hash(document: &[u8]) -> [u8; 32] {
    match crate::canonical::content(document) {
        Some(canonical) => Sha256::digest(&canonical).into(),
        None => Sha256::digest(document).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_partitioned_by_the_first_four_bytes_of_their_sha_256() {
        let expected = [("a", 0xca97_8112, 202), ("b", 0x3e23_e816, 62), ("42", 0x7347_5cb4, 115), ("order-1", 0x0baf_e221, 11)];
        for (key, hash, of_256) in expected {
            assert_eq!((key_hash(key), partition(hash, 256)), (hash, of_256));
        }
        assert_eq!(partition(1_431_655_765, 3), 0);
    }
}
