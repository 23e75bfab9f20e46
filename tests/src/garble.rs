//! Bodies that are wrong, made of right ones.
//!
//! Every function here gives bodies that no reader of the right kind may accept, so that a
//! test can demand a refusal, and not only that nothing falls over.

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// Bytes that JSON has nowhere: control characters, and ones that are no UTF-8 by themselves.
const NOWHERE: [u8; 10] = [0x00, 0x01, 0x07, 0x0b, 0x1f, 0x80, 0xbf, 0xc0, 0xfe, 0xff];

/// Cut an object's text short: never JSON.
pub fn cut(random: &mut StdRng, text: &[u8]) -> Vec<u8> {
    text[..random.random_range(0..text.len())].to_vec()
}

/// Put bytes that JSON cannot have somewhere into a text.
pub fn poison(random: &mut StdRng, text: &[u8]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..random.random_range(1..=3) {
        let place = random.random_range(0..=bytes.len());
        bytes.insert(place, NOWHERE[random.random_range(0..NOWHERE.len())]);
    }
    bytes
}

/// Nothing but random bytes, beginning with one that begins no JSON.
pub fn rubbish(random: &mut StdRng) -> Vec<u8> {
    let mut bytes = vec![NOWHERE[random.random_range(0..NOWHERE.len())]];
    bytes.extend((0..random.random_range(0..2_000)).map(|_| random.random::<u8>()));
    bytes
}

/// Texts that are wrong whatever the route: broken JSON, or JSON that is no object.
pub fn wrong_everywhere() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "}",
        "[",
        "[[]]",
        "null",
        "true",
        "0",
        "-",
        "1e",
        "\"\"",
        "\"\\ud800\"",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "nan",
        "NaN",
        "Infinity",
        "-Infinity",
        "{\"a\":NaN}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":0x10}",
        "{\"a\":1}{\"a\":1}",
        "{\"a\":\"\t\u{0}\"}",
        "{\"\\u12\":1}",
        "/**/{}",
        "\u{feff}{}",
        "<xml/>",
        "a=1&b=2",
        "\u{1F4A5}",
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    for depth in [100, 1_000, 100_000] {
        texts.push(b"[".repeat(depth));
        texts.push([b"[".repeat(depth), b"]".repeat(depth)].concat());
        texts.push([b"{\"a\":".repeat(depth), b"1".to_vec(), b"}".repeat(depth)].concat());
    }
    texts.push(format!("1{}", "0".repeat(10_000)).into_bytes());
    texts
}

/// MessagePack that is no command: lengths that nothing follows, and nesting without end.
pub fn wrong_messagepack() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = [0xdd, 0xdf, 0xc6, 0xdb, 0xc9]
        .into_iter()
        .map(|kind| vec![kind, 0xff, 0xff, 0xff, 0xff])
        .collect();
    // A map of one entry named "claim" with such a value.
    texts.extend(texts.clone().into_iter().map(|tail| [b"\x81\xa5claim".to_vec(), tail].concat()));
    texts.extend([vec![], vec![0xc1], vec![0x90], vec![0x80], vec![0xc0], vec![0x91, 0xc0]]);
    for depth in [1_000, 1_000_000] {
        texts.push(vec![0x91; depth]);
        texts.push(b"\x81\xa5claim".repeat(depth));
    }
    texts
}

/// The same body with one value of a wrong type or far out of range, for each of its values.
/// As texts, since some of the numbers are beyond what [`Value`] can hold.
pub fn wrong_values(body: &Value) -> Vec<String> {
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let strange = ["[[]]", "{\"\\u0000\":[1]}", "true", "-1.5", "-1e400", "1e400", deep.as_str()];
    let mut texts = Vec::new();
    for pointer in pointers(body) {
        for replacement in strange {
            let mut changed = body.clone();
            *changed.pointer_mut(&pointer).expect("the pointer was read from the body") =
                json!("@@@@");
            texts.push(changed.to_string().replace("\"@@@@\"", replacement));
        }
    }
    texts
}

/// The places of all values within a body, as JSON pointers.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.replace('~', "~0").replace('/', "~1"), field))
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (name, child) in children {
        found.push(format!("/{name}"));
        found.extend(pointers(child).into_iter().map(|rest| format!("/{name}{rest}")));
    }
    found
}
