//! `POST /ledger/v1/commands`: one command or a list of them, which is one atomic group.
//!
//! With an `Idempotency-Key` the same commands can be sent again for ever: they are carried out
//! once, and the answer is the first one's.

use ledger::command::Command;
use ledger::{Answer, Outcome};
use serde::Serialize;
use serde_json::{Value, json};

use super::events::EventBody;
use super::media::Form;
use super::searching;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals;

/// What is answered when all commands were accepted.
#[derive(Debug, Serialize)]
struct Done {
    outcome: &'static str,
    /// The durable sequence that the answer is true at.
    sequence: u64,
    /// The commands were sent before; this is what was answered then.
    repeated: bool,
    /// For each command why it changed nothing, if it changed nothing.
    unchanged: Vec<Option<Value>>,
    /// How many consumers still hold something of the provider of a `release_all`; of several such
    /// commands, of the last one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<u32>,
    /// What happened.
    events: Vec<EventBody>,
}

/// The handler.
///
/// # Errors
/// The refusal, in the ledger's words.
pub async fn submit(app: &App, request: &Request) -> Result<Reply, Failure> {
    let commands = read(Form::of_body(&request.headers)?, &request.body)?;
    carry_out(app, request, commands).await
}

/// Has commands decided as one group, however they came, and answers with the outcome.
///
/// # Errors
/// The refusal, in the ledger's words; 403 for a command that has a policy rule of its own.
pub async fn carry_out(
    app: &App,
    request: &Request,
    commands: Vec<Command>,
) -> Result<Reply, Failure> {
    if commands.iter().any(|command| matches!(command, Command::ReleaseAll(_))) {
        app.policy.check("ledger:release_all", &request.identity, None)?;
    }
    let answer = searching::ask(app, request, commands).await?;
    if let Outcome::Refused { refusal, recorded_at } = &answer.outcome {
        let mut failure = refusals::native(refusal).field("sequence", answer.sequence);
        if let Some(sequence) = recorded_at {
            failure = failure.field("recorded_at", *sequence);
        }
        return Err(failure.field("repeated", answer.repeated));
    }
    Form::of_answer(&request.headers).reply(&done(&answer))
}

fn done(answer: &Answer) -> Done {
    let unchanged = match &answer.outcome {
        Outcome::Accepted { unchanged } => {
            unchanged.iter().map(|why| why.as_ref().map(|why| json!(why))).collect()
        }
        Outcome::Refused { .. } => Vec::new(),
    };
    Done {
        outcome: "accepted",
        sequence: answer.sequence,
        repeated: answer.repeated,
        unchanged,
        left: answer.events().filter_map(|(_, event)| event.allocations()?.left).last(),
        events: answer
            .events()
            .map(|(header, event)| EventBody::new(header, event.body_json()))
            .collect(),
    }
}

/// A list, or one command alone. Which one is told by the first byte, so that a mistake inside
/// a command is told as such.
fn read(form: Form, body: &[u8]) -> Result<Vec<Command>, Failure> {
    if is_list(form, body) {
        return form.read(body);
    }
    if form == Form::Json && is_empty_object(body) {
        return Err(Failure::bad_request(
            "A command is an object with one member that is named for it, such as {\"confirm\": {...}}.",
        ));
    }
    form.read::<Command>(body).map(|command| vec![command])
}

fn is_empty_object(body: &[u8]) -> bool {
    let inner = body.trim_ascii().strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

fn is_list(form: Form, body: &[u8]) -> bool {
    match form {
        Form::Json => body.trim_ascii_start().first() == Some(&b'['),
        // Lists of up to 15, of 16-bit and of 32-bit length.
        Form::MessagePack => matches!(body.first(), Some(0x90..=0x9f | 0xdc | 0xdd)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_or_a_list_in_both_forms() {
        let one = br#" {"create_trait": {"name": "CUSTOM_A"}}"#;
        let commands = read(Form::Json, one).expect("a command");
        assert_eq!(commands.len(), 1);
        let list = format!("[{0},{0}]", String::from_utf8_lossy(one));
        assert_eq!(read(Form::Json, list.as_bytes()).expect("commands").len(), 2);
        let packed = rmp_serde::to_vec_named(&commands[0]).expect("MessagePack");
        assert_eq!(read(Form::MessagePack, &packed).expect("a command"), commands);
        let packed = rmp_serde::to_vec_named(&commands).expect("MessagePack");
        assert_eq!(read(Form::MessagePack, &packed).expect("commands"), commands);
    }

    #[test]
    fn mistakes_are_told() {
        let told = read(Form::Json, br#"{"create_trait": {"nam": "CUSTOM_A"}}"#)
            .expect_err("misspelt")
            .message;
        assert!(told.contains("nam"), "{told}");
        let told = read(Form::Json, b" {} ").expect_err("nothing").message;
        assert!(told.contains("named for it"), "{told}");
        let told = read(Form::Json, br#"{"fly": {}}"#).expect_err("unknown").message;
        assert!(told.contains("fly"), "{told}");
    }
}
