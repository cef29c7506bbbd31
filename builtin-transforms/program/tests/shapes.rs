//! Documents of one batch that look alike: what was found out about earlier ones must not decide about later ones.

use crate::support::{batch, copy, drop_when, remove, require, route, set};

const ORDINARY: &str = r#"{"kind":"order","n":1,"who":{"name":"Ada","email":"a@x"},"tenant":"t1","rest":[{"x":"y"}]}"#;

fn program() -> String {
    let steps = [
        require("kind", r#""order""#),
        copy("who.name", "who.shown"),
        remove("who.email"),
        set("meta.source", r#""cdc""#),
        route("tenant"),
        drop_when("n", "7"),
    ];
    steps.join(",")
}

/// The verdict on `document` behind so many ordinary ones, under limits.
fn behind(limits: &str, ordinary: usize, document: &str) -> String {
    let mut documents = vec![ORDINARY; ordinary];
    documents.push(document);
    let verdicts = batch(limits, &program(), &documents);
    let expected =
        r#"t1 | {"kind":"order","n":1,"who":{"name":"Ada","shown":"Ada"},"tenant":"t1","rest":[{"x":"y"}],"meta":{"source":"cdc"}}"#;
    assert!(verdicts[..ordinary].iter().all(|verdict| verdict == expected), "{verdicts:?}");
    verdicts[ordinary].clone()
}

/// What differs from the ordinary document, and what comes of it.
const DIFFERENT: &[(&str, &str, &str)] = &[
    // values of the same kinds
    (r#""n":1"#, r#""n":7.0"#, "drop"),
    (r#""n":1"#, r#""n":70e-1"#, "drop"),
    (r#""n":1"#, r#""n":1e9999999999999999999"#, "number-exponent"),
    (r#""order""#, r#""ordex""#, "required-value-differs"),
    (r#""order""#, r#""\u006frder""#, "t1 | "),
    (r#""t1""#, r#"" ""#, "route-missing"),
    (r#""t1""#, r#""\ud800""#, "route-not-text"),
    (r#""t1""#, r#""\u0074""#, "t | "),
    (r#""t1""#, r#"" é""#, " é | "),
    // other kinds
    (r#""n":1"#, r#""n":"1""#, "t1 | "),
    (r#""Ada""#, "null", "copy-source-missing"),
    (r#""Ada""#, "[1]", "t1 | "),
    (r#""t1""#, "null", "route-missing"),
    (r#""t1""#, "true", "true | "),
    (r#""t1""#, r#"{"t":1}"#, "route-not-scalar"),
    (r#"{"name":"Ada","email":"a@x"}"#, "{}", "copy-source-missing"),
    (r#"{"name":"Ada","email":"a@x"}"#, "5", "copy-source-missing"),
    // other names, more of them, fewer
    (r#""n":1,"#, "", "t1 | "),
    (r#""n":1"#, r#""n":1,"n":1"#, "duplicate-name"),
    (r#""n":1"#, r#""m":7"#, "t1 | "),
    (r#""n":1"#, r#""\u006e":7"#, "drop"),
    (r#"}]}"#, r#"}],"n":7}"#, "duplicate-name"),
    // broken
    (r#""n":1"#, r#""n":01"#, "invalid-json"),
    (r#""x":"y""#, "\"x\":\"\u{1}\"", "invalid-json"),
    (r#"}]}"#, r#"}]}}"#, "invalid-json"),
    (r#"}]}"#, r#"}]"#, "invalid-json"),
    // written in another way
    (r#""n":1"#, r#""n": 7"#, "drop"),
];

#[test]
fn one_that_differs_in_a_value_a_kind_a_name_or_a_fault_is_told_for_itself() {
    for (ordinary, different, expected) in DIFFERENT {
        let document = ORDINARY.replacen(ordinary, different, 1);
        let alone = behind("", 0, &document);
        assert!(alone.starts_with(expected), "{document}: {alone}");
        for ordinary in 1..12 {
            assert_eq!(behind("", ordinary, &document), alone, "{document} behind {ordinary}");
        }
    }
}

#[test]
fn a_larger_value_of_the_same_kind_is_measured() {
    let long = "y".repeat(200);
    for (ordinary, replacement) in [("Ada", long.as_str()), ("\"y\"", &format!("\"{long}\"")), ("a@x", &long)] {
        let document = ORDINARY.replacen(ordinary, replacement, 1);
        for limit in [document.len() - 1, document.len() + 20, document.len() + 40, document.len() + 200, 2 * document.len()] {
            let limits = format!(r#""document_bytes":{limit}"#);
            let alone = behind(&limits, 0, &document);
            assert!((0..6).all(|ordinary| behind(&limits, ordinary, &document) == alone), "{document} with {limits}");
        }
    }
}

#[test]
fn what_a_batch_may_use_is_counted_for_each() {
    assert_eq!(behind(r#""operations":29"#, 4, ORDINARY), "limit-operations");
    assert!(behind(r#""operations":30"#, 4, ORDINARY).starts_with("t1"));
    let (taken, given) = (ORDINARY.len(), behind("", 0, ORDINARY).len() - "t1 | ".len());
    assert_eq!(behind(&format!(r#""batch_bytes":{}"#, 5 * (taken + given) - 1), 4, ORDINARY), "limit-batch-bytes");
    assert_eq!(behind(&format!(r#""batch_bytes":{}"#, 5 * (taken + given) - given - 1), 4, ORDINARY), "limit-batch-bytes");
    assert!(behind(&format!(r#""batch_bytes":{}"#, 5 * (taken + given)), 4, ORDINARY).starts_with("t1"));
}

#[test]
fn depth_is_counted_inside_of_values_that_no_path_leads_to() {
    let deeper = ORDINARY.replacen("\"y\"", "[[]]", 1);
    assert_eq!(behind(r#""depth":4"#, 5, &deeper), "limit-depth");
    assert!(behind(r#""depth":5"#, 5, &deeper).starts_with("t1"));
}

#[test]
fn a_document_with_more_values_or_names_than_are_remembered_is_kept_as_well() {
    let long = "n".repeat(300);
    for members in [63, 64, 65, 200] {
        let member = |number: usize| format!(r#""{long}{number}":{number},"#);
        let document = format!("{{{}{}", (0..members).map(member).collect::<String>(), &ORDINARY[1..]);
        let verdicts = batch("", &program(), &[document.as_str(); 6]);
        assert!(verdicts[0].contains(&long) && verdicts.iter().all(|verdict| *verdict == verdicts[0]));
    }
}

#[test]
fn rows_of_many_tables_in_turn_are_told_from_each_other() {
    let tables: Vec<String> = (0..7).map(|table| ORDINARY.replacen("\"n\"", &format!("\"table{table}\":{table},\"n\""), 1)).collect();
    let documents: Vec<&str> = (0..200).map(|row| tables[row * row % 7].as_str()).collect();
    let verdicts = batch("", &program(), &documents);
    for (document, verdict) in documents.iter().zip(&verdicts) {
        assert_eq!(behind("", 0, document), *verdict);
    }
    assert_eq!(verdicts.len(), 200);
}
