//! The server's own truth: `row_to_json` of the published columns, compacted here by other means than the source's.

use tidegate_testkit::postgres::client;

use super::{Scene, State};

impl Scene {
    /// Every document as the server itself says, in a session with UTC and otherwise default settings.
    pub(crate) async fn truth(&self) -> State {
        let session = self.server.connect(&self.database).await;
        session.batch_execute("SET TimeZone = 'UTC'; BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
        let mut state = State::new();
        for table in &self.tables {
            let name = format!("'{}'::regclass", table.quoted().replace('\'', "''"));
            let columns = format!(
                "SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
                 JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
                 JOIN pg_publication_tables p ON p.pubname = 'tg_pub' AND p.schemaname = n.nspname AND p.tablename = c.relname
                 WHERE a.attrelid = {name} AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY (p.attnames)
                 AND (a.attgenerated = '' OR current_setting('server_version_num')::int >= 180000)"
            );
            let columns = client::rows(&session, &columns).await[0][0].clone().unwrap();
            let keys = format!(
                "SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.place), count(*) FROM pg_class c
                 JOIN pg_index i ON i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
                 CROSS JOIN unnest(i.indkey) WITH ORDINALITY k (attnum, place)
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum WHERE c.oid = {name} AND k.place <= i.indnkeyatts"
            );
            let keys = client::rows(&session, &keys).await.remove(0);
            let (key, count) = (keys[0].clone().unwrap(), keys[1].clone().unwrap());
            let filter = format!(
                "SELECT rowfilter FROM pg_publication_tables WHERE pubname = 'tg_pub'
                AND (quote_ident(schemaname) || '.' || quote_ident(tablename))::regclass = {name}"
            );
            let filter = client::rows(&session, &filter).await[0][0].clone().unwrap_or_else(|| "true".to_owned());
            let rows = format!(
                "SELECT row_to_json(d.*)::text, json_build_array({key})::text
                 FROM (SELECT {columns} FROM ONLY {} WHERE {filter}) d",
                table.quoted()
            );
            let mut documents = std::collections::BTreeMap::new();
            for row in client::rows(&session, &rows).await {
                let (document, key) = (compact(row[0].as_deref().unwrap()), compact(row[1].as_deref().unwrap()));
                documents.insert(if count == "1" { single_key(&key) } else { key }, document);
            }
            if !documents.is_empty() {
                state.insert(table.to_string(), documents);
            }
        }
        state
    }
}

/// The key text of a JSON array of one value.
fn single_key(array: &str) -> String {
    let value = &array[1..array.len() - 1];
    if value.starts_with('"') { unescaped(value) } else { value.to_owned() }
}

/// The content of a JSON string as the server writes it.
fn unescaped(quoted: &str) -> String {
    let mut out = String::new();
    let mut rest = quoted[1..quoted.len() - 1].chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match rest.next().unwrap() {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => out.push(char::from_u32(u32::from_str_radix(&rest.by_ref().take(4).collect::<String>(), 16).unwrap()).unwrap()),
            other => out.push(other),
        }
    }
    out
}

/// JSON without white space outside of strings.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for character in json.chars() {
        if inside || !matches!(character, ' ' | '\t' | '\n' | '\r') {
            out.push(character);
        }
        if escaped {
            escaped = false;
        } else if character == '\\' && inside {
            escaped = true;
        } else if character == '"' {
            inside = !inside;
        }
    }
    out
}

/// Fails with the first difference, not with two whole databases.
pub(crate) fn assert_same(what: &str, found: &State, expected: &State) {
    for (collection, documents) in expected {
        let empty = std::collections::BTreeMap::new();
        let there = found.get(collection).unwrap_or(&empty);
        for (key, document) in documents {
            let found = there.get(key).map_or("", String::as_str);
            let same = found.bytes().zip(document.bytes()).take_while(|(a, b)| a == b).count();
            let around =
                |text: &str| String::from_utf8_lossy(&text.as_bytes()[same.saturating_sub(40)..text.len().min(same + 60)]).into_owned();
            assert!(
                found == document,
                "{what}: {collection}, key {key}, byte {same}: …{}… in place of …{}…",
                around(found),
                around(document)
            );
        }
        for key in there.keys() {
            assert!(documents.contains_key(key), "{what}: {collection}: key {key} is not at the source");
        }
    }
    for (collection, documents) in found {
        assert!(documents.is_empty() || expected.contains_key(collection), "{what}: {collection} is empty at the source");
    }
}
