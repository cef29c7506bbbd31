//! Every built-in type with values at its edges, arrays of each, and types that users make.

/// Made before the tables.
pub(crate) const USER_TYPES: &str = "
CREATE SCHEMA v;
CREATE TYPE v.mood AS ENUM ('sad', 'very \"happy\"', 'a,b', 'ключ', '');
CREATE DOMAIN v.short AS text CHECK (length(VALUE) < 40);
CREATE DOMAIN v.small AS int;
CREATE DOMAIN v.smaller AS v.small CHECK (VALUE <> 13);
CREATE DOMAIN v.numbers AS int[];
CREATE DOMAIN v.own_mood AS v.mood;
CREATE DOMAIN v.price AS numeric(12, 2);
CREATE TYPE v.address AS (street text, \"house No\" int, \"quo\"\"ted\" text, tags text[]);
CREATE TYPE v.person AS (name text, home v.address, born date, seen timestamptz, amount v.price, mood v.mood, doc jsonb);
CREATE TYPE v.one AS (a text);
CREATE TYPE v.nothing AS ();
CREATE DOMAIN v.checked AS v.address CHECK ((VALUE).\"house No\" IS DISTINCT FROM 13);
CREATE TYPE v.floats AS RANGE (subtype = float8);";

/// A type, values of it, and array literals beside those that are made of the values.
pub(crate) struct Case(pub(crate) &'static str, pub(crate) &'static [&'static str], pub(crate) &'static [&'static str]);

pub(crate) const CASES: &[Case] = &[
    Case("bool", &["true", "false"], &[]),
    Case("int2", &["0", "-32768", "32767"], &["[0:1]={7,8}", "[-2:-1][3:3]={{1},{2}}", "{{1,2},{3,NULL}}"]),
    Case("int4", &["0", "-2147483648", "42"], &["{}", "{{NULL},{NULL}}", "{{{1},{2}},{{3},{4}}}", "{NULL}"]),
    Case("int8", &["9007199254740993", "-9223372036854775808"], &[]),
    Case("oid", &["0", "4294967295"], &[]),
    Case("xid", &["4294967295"], &[]),
    Case("xid8", &["18446744073709551615"], &[]),
    Case("cid", &["7"], &[]),
    Case("tid", &["(4294967295,65535)"], &[]),
    Case(
        "numeric",
        &[
            "0",
            "-0",
            "1.10",
            "0.000",
            "1e3",
            "-1.500",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e400",
            "1e-400",
            "123456789012345678901234567890",
            "0.1000000000000000055511151231257827",
            "0.00000000000000006938893903907228",
        ],
        &["{NaN,NULL,1.10,-Infinity}"],
    ),
    Case("numeric(12,2)", &["4200", "-0.5", "NaN"], &[]),
    Case("float4", &["0", "-0", "1.1", "3.4028235e38", "1e-45", "NaN", "-Infinity", "16777217", "1e15", "1e16", "0.0001", "0.00001"], &[]),
    Case(
        "float8",
        &[
            "-0",
            "5.99",
            "0.30000000000000004",
            "-216237.00000035969",
            "1e-300",
            "1.7976931348623157e308",
            "4.9e-324",
            "NaN",
            "Infinity",
            "1e22",
        ],
        &["{NaN,NULL,-0,1e-300}"],
    ),
    Case("money", &["0", "-1234567.89", "92233720368547758.07"], &[]),
    Case(
        "text",
        &[
            "",
            " ",
            "NULL",
            "null",
            "a\"b",
            "a\\b",
            "\\",
            "\\N",
            "\\.",
            "{x}",
            "a,b",
            "tab\there",
            "line\nfeed",
            "cr\rlf\r\n",
            "\u{8}\u{c}\u{1}\u{1f}\u{7f}\u{b}",
            "é",
            "ключ",
            "日本語",
            "🤔🤔",
            "e\u{301}",
            "\u{2028}\u{2029}",
            "\u{feff}bom",
            "\u{a0}",
            "</script>",
            "'",
            "\u{d7ff}\u{e000}",
            "\u{10ffff}",
            "0123456789012345678901234567890123456789\"0123456789012345678901234567890123456789\n",
        ],
        &["{NULL,\"NULL\",\"a\\\"b\",\"a\\\\b\",\"\",\"{x}\",N}", "[0:1]={a,b}", "{{\"a,b\",\"c d\"},{\"{\",\"}\"}}"],
    ),
    Case("varchar(10)", &["", "trailing  "], &[]),
    Case("char(8)", &["", "a", "a b  ", "é"], &[]),
    Case("\"char\"", &["a", "", "\"", "\\"], &[]),
    Case("name", &["a name", "q\"uote"], &[]),
    Case("bytea", &["", "\\x00", "\\xdeadbeef", "abc\\000\\\\"], &["{\"\\\\x\",\"\\\\x00ff\",NULL}"]),
    Case("bit(3)", &["101"], &[]),
    Case("varbit", &["", "10001"], &[]),
    Case("uuid", &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"], &[]),
    Case("tsvector", &["", "a:1A fat:2B,4C cat:5", "'it''s':1 'back\\\\slash'"], &[]),
    Case("tsquery", &["fat & (rat | !cat) <2> dog:*A"], &[]),
    Case(
        "date",
        &["2024-02-29", "0001-01-01", "0001-12-31 BC", "1991-02-10 BC", "4714-11-24 BC", "15000-12-31", "infinity", "-infinity"],
        &["{infinity,NULL,1991-02-10 BC}"],
    ),
    Case("time", &["00:00:00", "24:00:00", "23:59:59.999999", "12:30:00.100000"], &[]),
    Case("timetz", &["00:00:00+00", "24:00:00-15:59:59", "12:00:00+05:30:15", "01:02:03.5-00:30"], &[]),
    Case(
        "timestamp",
        &[
            "2024-02-29 12:34:56.789",
            "0001-01-01 00:00:00",
            "0214-02-05 15:40:00 BC",
            "4714-11-24 00:00:00 BC",
            "294276-12-31 23:59:59.999999",
            "infinity",
            "-infinity",
            "1999-12-31 24:00:00",
        ],
        &["{infinity,NULL,\"2024-02-29 12:34:56.789\"}"],
    ),
    Case("timestamp(3)", &["2024-02-29 12:34:56.7899"], &[]),
    Case(
        "timestamptz",
        &[
            "2024-02-29 12:34:56.789+00",
            "1883-11-18 12:00:00+05:30:15",
            "0001-01-01 00:00:00+00",
            "0214-02-05 15:40:00+00 BC",
            "294276-12-31 23:59:59.999999+00",
            "infinity",
            "-infinity",
            "2024-07-01 00:00:00 America/St_Johns",
        ],
        &["{-infinity,NULL,\"2024-02-29 12:34:56+00\"}"],
    ),
    Case("interval", &["0", "-1 mon +2 days", "1 year 2 mons -3 days 04:05:06.789", "-00:00:00.000001", "100 hours"], &[]),
    Case("inet", &["10.1.2.3/8", "::ffff:1.2.3.4"], &[]),
    Case("cidr", &["10.0.0.0/8", "::/0"], &[]),
    Case("macaddr", &["08:00:2b:01:02:03"], &[]),
    Case("macaddr8", &["08:00:2b:01:02:03:04:05"], &[]),
    Case("point", &["(1,2)", "(-0,1e-300)", "(NaN,Infinity)"], &[]),
    Case("line", &["{1,2,3}"], &[]),
    Case("lseg", &["[(0,0),(1,1)]"], &[]),
    Case("box", &["(1,1),(0,0)"], &["{(1,1),(0,0);(2,2),(1,1)}"]),
    Case("path", &["[(0,0),(1,1)]", "((0,0),(1,1),(2,0))"], &[]),
    Case("polygon", &["((0,0),(1,1),(2,0))"], &[]),
    Case("circle", &["<(0,0),1.5>"], &[]),
    Case(
        "json",
        &[
            "null",
            "0",
            "-0",
            "1.10",
            "1E5",
            "1e400",
            "\"\"",
            "{}",
            "[]",
            "{\"a\":1,\"a\":2}",
            "{ \"a\" : [ 1 , 2 ] ,\n\t\"b\" : \" x  y \" }",
            "{\"n\":1234567890123456789,\"d\":0.1000000000000000055511151231257827}",
            "{\"u\":\"\\u00e9\\ud83e\\udd14 \\\\u0000 \\/\"}",
            "{\"a\":\"x\\u0000y\"}",
            " [1,\r\n 2] ",
            "{\"b\":1,\"a\":2}",
        ],
        &[],
    ),
    Case(
        "jsonb",
        &[
            "null",
            "-0",
            "1.10",
            "1E5",
            "{\"a\":1,\"a\":2}",
            "{\"n\":123456789012345678901234567890,\"e\":1e40}",
            "{\"bb\":1,\"a\":2}",
            "[[], {}, \"\", \" : , \"]",
            "\"text: \\\"quoted\\\"\"",
        ],
        &["{\"{\\\"a\\\": 1}\",NULL}"],
    ),
    Case("jsonpath", &["$.\"a\"[*] ? (@ > 1)"], &[]),
    Case("pg_lsn", &["16/B374D848"], &[]),
    Case("pg_snapshot", &["10:20:10,14,15"], &[]),
    Case("regclass", &["pg_class", "information_schema.tables", "v.short_table", "-"], &[]),
    Case("regtype", &["integer", "text[]", "v.mood", "-"], &[]),
    Case("regprocedure", &["lower(text)"], &[]),
    Case("regoperator", &["+(integer,integer)"], &[]),
    Case("regrole", &["postgres"], &[]),
    Case("regnamespace", &["pg_catalog"], &[]),
    Case("int2vector", &["1 2 3", ""], &[]),
    Case("oidvector", &["1 4294967295"], &[]),
    Case("int4range", &["empty", "[1,5)", "(,)", "[3,]"], &["{\"[1,3)\",empty,NULL}"]),
    Case("numrange", &["[1.10,2.000]", "(NaN,)"], &[]),
    Case("daterange", &["[2024-01-01,2024-12-31]", "[0044-03-15 BC,)"], &[]),
    Case("tsrange", &["[\"2024-01-01 00:00:00\",\"2024-01-01 12:00:00.5\")"], &[]),
    Case("tstzrange", &["[\"2024-01-01 00:00:00+00\",\"2024-07-01 12:00:00.5+00\")"], &[]),
    Case("int4multirange", &["{}", "{[1,3),[5,9)}"], &["{\"{[1,3),[5,9)}\",NULL}"]),
    Case("tstzmultirange", &["{[\"2024-01-01 00:00:00+00\",\"2024-07-01 12:00:00.5+00\")}"], &[]),
    Case("v.floats", &["[-0,0.30000000000000004)", "empty"], &[]),
    Case("v.mood", &["sad", "very \"happy\"", "a,b", "ключ", ""], &["{sad,NULL,\"very \\\"happy\\\"\",\"a,b\",\"\"}"]),
    Case("v.short", &["", "a\"b"], &[]),
    Case("v.smaller", &["0", "-7"], &[]),
    Case("v.numbers", &["{}", "{1,NULL}", "[0:1]={7,8}", "{{1,2},{3,4}}"], &[]),
    Case("v.own_mood", &["very \"happy\""], &[]),
    Case("v.price", &["1.1", "NaN"], &[]),
    Case(
        "v.address",
        &["(,,,)", "(\"Main St\",12,\"a\"\"b\\\\c\",\"{a,NULL,\"\"b c\"\"}\")", "(\"\",0,\"(x,y)\",{})"],
        &["{\"(\\\"Main St\\\",12,,)\",NULL}"],
    ),
    Case("v.checked", &["(\"Main St\",12,,)"], &[]),
    Case(
        "v.person",
        &[
            "(,,,,,,)",
            "(\"O\"\"Neil\",\"(\"\"Main, St\"\",12,\"\"q\"\"\"\"q\"\",\"\"{x,\"\"\"\"y z\"\"\"\"}\"\")\",\"0044-03-15 BC\",\
             \"2024-01-01 00:00:00+00\",1.1,\"very \"\"happy\"\"\",\"{\"\"n\"\": 12345678901234567890}\")",
        ],
        &[],
    ),
    Case("v.one", &["()", "(\"\")", "(x)"], &[]),
    Case("v.nothing", &["()"], &[]),
];

/// Types of keys whose text is easy to get wrong.
pub(crate) const KEYS: &[(&str, &[&str])] = &[
    ("text", &["a\"b\\c", "", "é\n\t", "日本", " x ", "null", "1", "[1]"]),
    ("v.mood", &["sad", "very \"happy\"", "ключ"]),
    ("v.own_mood", &["a,b"]),
    ("bool", &["true", "false"]),
    ("numeric", &["1.10", "9007199254740993", "NaN", "0.00"]),
    ("float8", &["0.1", "-0", "1e300"]),
    ("uuid", &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"]),
    ("bytea", &["\\x00ff"]),
    ("timestamptz", &["2024-02-29 12:34:56.789+00", "infinity", "0044-03-15 00:00:00+00 BC"]),
    ("date", &["2024-02-29", "0044-03-15 BC"]),
    ("int[]", &["{1,2}", "{}"]),
    ("jsonb", &["{\"a\": 1}", "\"text \\\"x\\\"\"", "7"]),
    ("char(4)", &["a", "bc"]),
    ("inet", &["10.1.2.3/8"]),
    ("v.address", &["(x,1,,)"]),
];

/// A value as an SQL literal of a type.
pub(crate) fn literal(value: &str, of_type: &str) -> String {
    format!("'{}'::{of_type}", value.replace('\'', "''"))
}

/// Inserts one row for each value, alone and in arrays, one for each array, and one of nulls; ids begin behind `offset`.
pub(crate) fn inserts(table: &str, case: &Case, offset: usize) -> String {
    let Case(name, values, arrays) = case;
    let mut rows = Vec::new();
    for value in *values {
        let value = literal(value, name);
        rows.push(format!("{value}, ARRAY[{value}, NULL::{name}]"));
    }
    let (first, last) = (literal(values[0], name), literal(values[values.len() - 1], name));
    rows.push(format!("NULL, ARRAY[[{first}, {last}], [NULL::{name}, {first}]]"));
    rows.extend(arrays.iter().map(|array| format!("NULL, {}", literal(array, &format!("{name}[]")))));
    rows.push("NULL, NULL".to_owned());
    let rows: Vec<_> = rows.iter().enumerate().map(|(index, row)| format!("({}, {row})", offset + index + 1)).collect();
    format!("INSERT INTO {table} VALUES {};", rows.join(", "))
}
