//! The messages of agents while they work: steps, questions, letters, and that they are done.

use gt_beads::messages::{self, Escalation, MessageToSend};
use gt_core::message::Severity;
use gt_core::schedule::{DoneStatus, RunId, RunState};
use gt_execution::landing::{DoneRequest, done};
use gt_town::{Actor, OperationError, Town};

use crate::simulation::Simulation;
use crate::violation::Invariant;

/// A message of an agent.
#[derive(Debug, Clone, Copy)]
enum AgentMessage {
    /// Its next step is done.
    Step,
    /// It needs a person, and goes on.
    Ask,
    /// It writes to another agent or a person.
    Write,
    /// It has read its messages.
    Read,
    /// It approves a merge request, which no agent may.
    Approve,
    /// It is done, in this way.
    Done(DoneStatus),
}

impl Simulation {
    /// One command of an agent, while its run is live or after that has ended: then it is refused.
    pub(crate) fn agent_acts(&self) {
        let (run, word) = {
            let agents = self.acting_agents();
            let mut state = self.state();
            let Some(run) = state.random.pick(&agents).cloned() else { return };
            let words = vec![
                (4, AgentMessage::Step),
                (1, AgentMessage::Ask),
                (1, AgentMessage::Write),
                (2, AgentMessage::Read),
                (1, AgentMessage::Approve),
                (3, AgentMessage::Done(DoneStatus::Completed)),
                (1, AgentMessage::Done(DoneStatus::Escalated)),
                (1, AgentMessage::Done(DoneStatus::Deferred)),
            ];
            let Some(word) = state.random.weighted(words) else { return };
            (run, word)
        };
        let before = self.read(|reader| reader.run(&run)).map(|run| run.state);
        self.as_process(&format!("agent of {run}"), |id| {
            let actor = Actor { name: "agent".to_owned(), owner: String::new() };
            let town = self.town(id, "agent").acting_as(actor, Some(run.clone()));
            let answer = self.say_word(&town, &run, word);
            let was_over = before.is_some_and(|state| !state.is_live());
            if was_over
                && answer.is_ok()
                && !matches!(word, AgentMessage::Step | AgentMessage::Read | AgentMessage::Approve)
            {
                let found =
                    format!("the agent of {run} is heard ({word:?}), which was over before");
                self.violated(Invariant::Soundness, found);
            }
            let said = self.sound(&format!("{word:?} of {run}"), answer);
            self.tell(format!("{run} says {word:?}: {said:?}"));
        });
        // An agent that is done is asked to leave; the process that asks may have died before.
        let over = self.read(|reader| reader.run(&run));
        let is_over = over.is_some_and(|run| {
            run.said.is_some() && matches!(run.state, RunState::Done | RunState::Cancelled)
        });
        if is_over && !self.fault(3) {
            self.ask_to_end(&run);
        }
    }

    fn say_word(
        &self,
        town: &Town,
        run: &RunId,
        word: AgentMessage,
    ) -> Result<String, OperationError> {
        match word {
            AgentMessage::Step => {
                let steps = gt_beads::steps::steps(town, None)?;
                let Some(next) = steps.next().map(|view| view.name.clone()) else {
                    return Ok("no step is left".to_owned());
                };
                let finished = gt_beads::steps::finish_steps(town, None, &[next], false)?;
                let done = self.read(|reader| reader.steps_done(run));
                let ids = done.into_iter().map(|done| done.step);
                self.state().ticked.entry(run.clone()).or_default().extend(ids);
                Ok(finished.progress.to_string())
            }
            AgentMessage::Ask => {
                let words = "which one?".to_owned();
                let wanted = Escalation { bead: None, words, severity: Severity::High };
                let sent = messages::escalate(town, None, &wanted)?;
                self.state().sent.insert(sent.id);
                Ok(sent.id.to_string())
            }
            AgentMessage::Write => {
                let letter = letter("all is well");
                let sent = messages::send(town, None, "mayor", &letter)?;
                self.state().sent.insert(sent.id);
                Ok(sent.id.to_string())
            }
            AgentMessage::Read => {
                let unread = messages::inbox(town, None, None, None)?.messages;
                messages::mark_seen(town, None, &unread)?;
                Ok(format!("{} read", unread.len()))
            }
            AgentMessage::Approve => self.approve_as_agent(town, run),
            AgentMessage::Done(DoneStatus::Completed) if self.hands_in(run) => {
                self.hand_in(town, run)
            }
            AgentMessage::Done(said) => {
                let request = DoneRequest { run, said, message: None, no_changes: false };
                done(town, &request).map(|done| format!("{:?}", done.delivery))
            }
        }
    }
}

/// A letter in plain words.
pub(crate) fn letter(words: &str) -> MessageToSend {
    MessageToSend { subject: None, body: words.to_owned(), nudge: false }
}
