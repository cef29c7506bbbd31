//! What a pipeline's documents are made by (Invariant 6).

use serde_json::{Value, json};
use tidegate_api::chunk::DOCUMENT_FORMAT;
use tidegate_api::{Fingerprint, Transform, canonical};

use crate::settings::Settings;

/// SHA-256 of the canonical JSON of the mapping (tables to collections), the document format, what a drop does, and the
/// stages of the transform with their configuration, limits and module hashes. Retry and pace are not part of it.
///
/// The order in which tables are listed does not count.
pub fn fingerprint(settings: &Settings, transform: Option<&dyn Transform>) -> Fingerprint {
    canonical::fingerprint(&definition(settings, transform))
}

fn definition(settings: &Settings, transform: Option<&dyn Transform>) -> Value {
    let mut tables: Vec<String> = settings.tables.iter().map(ToString::to_string).collect();
    tables.sort();
    tables.dedup();
    // The text, not its parsed form: a number of a literal must not pass through a float.
    let stages = transform.map_or("[]", Transform::definition);
    let mut declared = settings.collections.clone();
    declared.sort();
    let mapping =
        if declared.is_empty() { json!({ "collections": tables }) } else { json!({ "collections": tables, "declared": declared }) };
    json!({
        "format": 1,
        "mapping": mapping,
        "document_format": DOCUMENT_FORMAT,
        "on_drop": settings.on_drop,
        "stages": stages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(tables: &[&str]) -> Settings {
        Settings {
            name: "all".to_owned(),
            tables: tables.iter().map(|table| table.parse().unwrap()).collect(),
            collections: Vec::new(),
            on_drop: tidegate_api::OnDrop::Delete,
            retry: crate::RetryPolicy::default(),
            max_transaction: crate::MaxTransaction::default(),
            spool: "spool".into(),
        }
    }

    #[test]
    fn the_fingerprint_of_a_definition_stays_what_it_is() {
        let one = fingerprint(&settings(&["public.a", "public.b"]), None);
        assert_eq!(one, fingerprint(&settings(&["public.b", "public.a"]), None));
        assert_ne!(one, fingerprint(&settings(&["public.a"]), None));
        let retain = Settings { on_drop: tidegate_api::OnDrop::Retain, ..settings(&["public.a", "public.b"]) };
        assert_ne!(one, fingerprint(&retain, None));
        let declaring = Settings { collections: vec!["archive".to_owned()], ..settings(&["public.a", "public.b"]) };
        assert_ne!(one, fingerprint(&declaring, None));
        // Pipelines that run would have to be filled anew if this changed.
        let text = r#"{"document_format":1,"format":1,"mapping":{"collections":["public.a","public.b"]},"on_drop":"delete","stages":"[]"}"#;
        assert_eq!(one, canonical::fingerprint(&serde_json::from_str(text).unwrap()));
        assert_eq!(one.to_string(), "6a3a112b461fa1408c06bec4f3941deee507494df8e67afcf4b23e86e6d365b1");
    }
}
