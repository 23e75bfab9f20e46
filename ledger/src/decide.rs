//! Deciding: a state and commands in, events or a refusal out. Pure: no clock, no randomness, no
//! disk. The same input gives the same events in every process.

use crate::command::Command;
use crate::commands;
use crate::event::{Event, Unchanged};
use crate::limits;
use crate::panics::planted;
use crate::refusal::{Cause, Refusal};
use crate::stamp::Stamp;
use crate::state::State;
use crate::time::Timestamp;
use std::cell::Cell;
use std::rc::Rc;
use uuid::Uuid;

/// What became of a list of commands: all of it, or nothing.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The events, in order.
    pub events: Vec<Event>,
    /// For each command, why it changed nothing, if it changed nothing.
    pub unchanged: Vec<Option<Unchanged>>,
    /// The state after the events.
    pub state: State,
}

/// A state that is being changed by the commands of one group.
pub(crate) struct Draft<'a> {
    pub(crate) state: State,
    pub(crate) events: Vec<Event>,
    pub(crate) stamp: &'a Stamp,
    pub(crate) before: Before,
    now: Timestamp,
    ids_drawn: u32,
    /// How much work it was so far, that of what was only tried included.
    steps: Rc<Cell<u64>>,
}

/// What is remembered of the state that a group was begun on.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    pub(crate) sequence: u64,
    pub(crate) roomier: u64,
}

impl<'a> Draft<'a> {
    /// Adds an event and folds it into the state, so that what follows is decided after it.
    pub(crate) fn emit(&mut self, event: Event) {
        self.state.apply(self.state.sequence() + 1, self.now, &event);
        planted("apply", self.stamp.request_id.as_deref());
        self.events.push(event);
    }

    /// Counts work that is about to be done. There is no clock in it: the same commands on the same
    /// state always take the same number of steps.
    ///
    /// # Errors
    /// [`Cause::TooLarge`] if it is more than [`limits::STEPS`] all together.
    pub(crate) fn charge(&self, steps: usize) -> Result<(), Refusal> {
        let all = self.steps.get().saturating_add(steps as u64);
        self.steps.set(all);
        if all > limits::STEPS {
            let what = "steps of the list".to_owned();
            return Err(Cause::TooLarge { what, limit: limits::STEPS }.into());
        }
        Ok(())
    }

    /// A new id, the same whenever this stamp's command is decided.
    pub(crate) fn new_id(&mut self) -> Uuid {
        self.ids_drawn += 1;
        // Event ids take the numbers from 0, these from the other end.
        crate::ids::derived_uuid(
            &self.stamp.seed,
            self.stamp.received_at,
            u32::MAX - self.ids_drawn,
        )
    }

    /// A copy to try something on; cheap. It is kept by [`Self::accept`] or dropped.
    pub(crate) fn trial(&self) -> Draft<'a> {
        Draft {
            state: self.state.clone(),
            events: Vec::new(),
            stamp: self.stamp,
            before: self.before,
            now: self.now,
            ids_drawn: self.ids_drawn,
            steps: Rc::clone(&self.steps),
        }
    }

    /// Keeps what was tried.
    pub(crate) fn accept(&mut self, trial: Draft<'a>) {
        self.state = trial.state;
        self.ids_drawn = trial.ids_drawn;
        self.events.extend(trial.events);
    }
}

/// Decides a list of commands as one atomic group on `state`, recorded at `now`.
///
/// # Errors
/// The first refusal; then nothing of the list is done.
pub fn decide(
    state: &State,
    list: &[Command],
    stamp: &Stamp,
    now: Timestamp,
) -> Result<Decided, Refusal> {
    let mut after = state.clone();
    let (events, unchanged) = decide_in_place(&mut after, list, stamp, now)?;
    Ok(Decided { events, unchanged, state: after })
}

/// The events of a group, and for each of its commands why it changed nothing, if so.
pub(crate) type Group = (Vec<Event>, Vec<Option<Unchanged>>);

/// Like [`decide`], but changes `state` itself, which spares copying what its clones share. A
/// refusal leaves it as it was.
pub(crate) fn decide_in_place(
    state: &mut State,
    list: &[Command],
    stamp: &Stamp,
    now: Timestamp,
) -> Result<Group, Refusal> {
    // One command adds events only once all its checks have passed; a list needs a way back.
    let backup = (list.len() > 1).then(|| state.clone());
    let before = Before { sequence: state.sequence(), roomier: state.roomier() };
    let state_in_hand = std::mem::take(state);
    let mut draft = Draft {
        state: state_in_hand,
        events: Vec::new(),
        stamp,
        before,
        now,
        ids_drawn: 0,
        steps: Rc::default(),
    };
    let decided = decide_list(&mut draft, list);
    match decided {
        Ok(unchanged) => {
            *state = draft.state;
            Ok((draft.events, unchanged))
        }
        Err(refusal) => {
            // Each command adds its events after the last check that can refuse it, or tries on a
            // draft of its own.
            assert!(backup.is_some() || draft.events.is_empty(), "a refused command added events");
            *state = backup.unwrap_or(draft.state);
            Err(refusal)
        }
    }
}

fn decide_list(draft: &mut Draft<'_>, list: &[Command]) -> Result<Vec<Option<Unchanged>>, Refusal> {
    if list.is_empty() {
        return Err(Cause::Malformed { what: "the list of commands is empty".into() }.into());
    }
    if list.len() > limits::LIST_COMMANDS {
        return Err(too_large("commands in the list", limits::LIST_COMMANDS));
    }
    let mut unchanged = Vec::with_capacity(list.len());
    for (index, command) in list.iter().enumerate() {
        let decided = commands::decide(draft, command);
        let decided = decided.and_then(|answer| {
            // No more would fit, whatever comes: the rest need not be decided.
            let fits = list.len() == 1 || draft.events.len() <= limits::EVENTS;
            let too_many = || too_large("bytes of the group", limits::GROUP_BYTES);
            if fits { Ok(answer) } else { Err(too_many()) }
        });
        let answer = decided.map_err(|mut refusal| {
            refusal.index = u32::try_from(index).unwrap_or(u32::MAX);
            refusal
        })?;
        unchanged.push(answer);
    }
    Ok(unchanged)
}

/// The refusal of something larger than a limit.
pub(crate) fn too_large(what: &str, limit: usize) -> Refusal {
    Cause::TooLarge { what: what.into(), limit: limit as u64 }.into()
}
