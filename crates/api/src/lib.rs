//! The wire format, once: what the HTTP service answers, what its clients send and read, and what `--json` prints.
//!
//! # Architecture invariants
//!
//! - A document is data: fields in the order in which they are written, no rule of the domain.
//! - The order of fields, their names and which of them may be missing are what programs rely on;
//!   `crates/cli/tests/fixtures/wire_format.snap` records them.
//! - Bead records are not here: they carry fields that we do not know, and `gt-records` writes them without loss.
//! - Documents are made from what operations return, by `From` where the source is in the core.

#![expect(
    missing_docs,
    reason = "a field is named on the wire; only those that need words have them"
)]

mod bead_commands;
mod beads;
mod check;
mod clearable;
mod config;
mod convoy;
mod cost;
mod daemon;
mod deck;
mod event;
mod inbox;
mod merging;
mod message;
mod ordered_map;
mod polecat;
mod problem;
mod project;
mod raw_json;
mod run;
mod scheduler;
mod screen;
mod server;
mod store;
mod token;
mod town;
mod transcript;
mod utc_time;
mod why_bead;
mod work;
mod work_requests;

pub use bead_commands::{
    BondDocument, CheckedGateDocument, ClosedEpicsDocument, CreatedSwarmDocument,
    DiscoveredRunDocument, DistilledFormulaDocument, DuplicateGroupDocument,
    DuplicateIssueDocument, DuplicatesDocument, EpicProgressDocument, GateCheckDocument,
    GatedStepDocument, GatedStepsDocument, HumanCountsDocument, KeptMemoryDocument,
    ListedSwarmDocument, LocationDocument, MarkedDuplicateDocument, MergeSlotDocument,
    MoleculeAdvanceDocument, MoleculeDocument, MoleculeStepDocument, NamedDocument, OrphanDocument,
    PastBeadDocument, PingDocument, PouredMoleculeDocument, PurgedDocument, RelationDocument,
    RenamedBeadDocument, RenamedPrefixDocument, SchemaDocument, SessionContextDocument,
    SessionHookDocument, SetupDocument, SkippedLabelsDocument, SquashedMoleculeDocument,
    StatusDocument, StatusesDocument, SupersededDocument, SwarmDocument, SwarmPlanDocument,
    SwarmWaveDocument, SwarmsDocument, TypesDocument, WispsDocument, WorkspaceDocument,
};
pub use beads::{
    BatchLineDocument, BlockingEdgeDocument, ClosedDocument, CountDocument, DeletedIds,
    DeletedPairDocument, DeletionDocument, EdgeDocument, FormulaDocument, FormulaProblemDocument,
    FormulaProblemsDocument, FoundPairDocument, GroupDocument, GroupedCountDocument,
    IdsByKeyDocument, ImportDocument, ImportRemarkDocument, InfoDocument, LabelChangeDocument,
    LabelCountDocument, LintDocument, PairDocument, PrimerBeadDocument, PrimerCountsDocument,
    PrimerDocument, QueryDocument, ReadySummaryDocument, SentenceDocument, StatisticsDocument,
    SummaryDocument, SyncDocument, VersionDocument,
};
pub use check::{CheckReportDocument, RigCheckDocument};
pub use clearable::Clearable;
pub use config::{
    AccountDocument, BrokenRuntimeDocument, DefaultAccountDocument, LimitPatternDocument,
    LoginPlacesDocument, PasteDocument, RuntimeDocument, RuntimeEntryDocument, SettingDocument,
    TestedRuntimeDocument, UsagePatternsDocument, UsageWindowDocument,
};
pub use convoy::{
    ConvoyDocument, ConvoyGraphDocument, ConvoyOverviewDocument, ConvoyStatusDocument,
    ConvoyTimelineDocument, EstimateDocument, FindingDocument, LogPlaceDocument,
    StagedBeadDocument, StagedDocument, StagedTaskDocument, StagedWaveDocument, StrandedDocument,
    TimelineRowDocument, TimelineSpanDocument, TrackedDocument, WaveDocument,
};
pub use cost::{CostDocument, CostLineDocument, CountedUsageDocument, UnpricedDocument};
pub use daemon::{
    DaemonStartedDocument, DaemonStoppedDocument, DeliveredDocument, DemoDocument, LatencyDocument,
    NotRunningDocument, NoticeDocument, ToldDocument, UnitDocument,
};
pub use deck::{
    AccountUseDocument, BeadChangeDocument, BeadCloseDocument, BeadPageDocument, BeadRetryDocument,
    BeadSlingDocument, BoardCardDocument, BoardDocument, BoardLaneDocument, BudgetLimitDocument,
    BudgetUseDocument, BurnDocument, BurnHourDocument, CardConvoyDocument, CardReasonDocument,
    CardRequestDocument, CardRunDocument, FlakyUseDocument, LandingDocument, ListDocument,
    NothingDocument, RunRowDocument, RunStepDocument, SearchHitDocument, TownDaemonDocument,
    TownHeadDocument, TownHostDocument, TownPauseDocument, TownProblemDocument, WordsDocument,
};
pub use event::EventDocument;
pub use inbox::{ChangeSizeDocument, InboxItemDocument, InboxMessageDocument};
pub use merging::{
    ApprovalDocument, CandidateCheckDocument, CandidateDocument, CandidatePartDocument,
    DecisionReasonDocument, DiffStatDocument, FailedCheckDocument, FlakyCheckDocument,
    MergeQueueDocument, MergeRequestDocument, MergeRequestStoryDocument, NewCommentDocument,
    PullRequestDocument, QueueBranchDocument, QueuePauseDocument, RequestDiffDocument,
    ReviewDocument, ShownCommentDocument, TopDocument,
};
pub use message::{MessageDocument, NeedDocument, NeedsYouDocument, NudgeDocument};
pub use ordered_map::OrderedMap;
pub use polecat::{
    NukedDocument, PeekDocument, PolecatDocument, RescueDocument, RestoredDocument, TrashedDocument,
};
pub use problem::{ErrorDocument, FieldError, ProblemDocument};
pub use project::{NewProjectDocument, ProjectChangeDocument, ProjectDocument};
pub use raw_json::RawJson;
pub use run::{
    BriefedBeadDocument, BriefingDocument, CancelledDocument, DoneDocument, EarlierRunDocument,
    EndingDocument, FullRunDocument, HandoffDocument, HookedBeadDocument, HookedDocument,
    ListedRunDocument, OverviewDocument, QueueCountsDocument, ReasonTextDocument,
    RunContextDocument, RunLineDocument, RunLogDocument, RunStateDocument, ShownRunDocument,
    StepDocument, StepProgressDocument, StepsDocument, StepsDoneDocument, UnreadDocument,
    UnslungDocument, WaitedBeadDocument, WaitedDocument,
};
pub use scheduler::{
    AdoptedDocument, AdoptionDocument, AmountDocument, AwaitingRunDocument, BeadErrorDocument,
    BudgetDocument, CleanedDocument, ClearedDocument, DaemonAbsenceDocument, DispatchedDocument,
    DrainDocument, FeedDetailDocument, FeedDocument, KeptHookDocument, ParkedDocument,
    ParkedNameDocument, PauseDocument, QuarantinedDocument, QueuedDocument, RedispatchDocument,
    ReleasedHookDocument, ResumedDocument, RetriedDocument, RetryDocument, RigQueueDocument,
    RunErrorDocument, SchedulerStatusDocument, SlingDocument, SlingEntryDocument,
    StaleHooksDocument, StartedDocument, WaitReasonDocument, WorkedOffDocument,
};
pub use screen::{
    CursorDocument, KeyStrokesDocument, KeysTypedDocument, ScreenDocument, StyledTextDocument,
    TileProblemDocument,
};
pub use server::{AccessLogDocument, HealthDocument, ListeningDocument};
pub use store::{
    BackupDocument, DifferenceDocument, EventsGrowthDocument, GrowthDocument, StoreCheckDocument,
    StoreInfoDocument, StoreMoveDocument, TableDocument, VacuumDocument,
};
pub use token::{
    DeckDocument, DeckLoginDocument, NewTokenDocument, SessionDocument, TokenDocument,
};
pub use town::{
    AdoptedHostDocument, CheckDocument, FleetHostDocument, HostDocument, InitDocument,
    InstalledDocument, NoticeCountsDocument, RigCountsDocument, RigDocument, SpentDocument,
    TownSchedulerDocument, TownStatusDocument,
};
pub use transcript::{ModelUsageDocument, TranscriptEventDocument};
pub use utc_time::UtcTime;
pub use why_bead::{
    CauseDocument, ContextDocument, ConvoyReferenceDocument, LineDocument, RemediedReasonDocument,
    WhyBeadDocument,
};
pub use work::{
    DispatchDocument, HeartbeatAnswerDocument, NextAnswerDocument, OverdueDocument, PollDocument,
    ReasonDocument, RunDocument, WhyDocument, WorkDetailsDocument, WorkItemDocument, WorkOutcome,
    WorkStatusName,
};
pub use work_requests::{
    HeartbeatDocument, NewWorkDocument, NextDocument, ReleaseDocument, StaleCheckDocument,
    SubmissionDocument, SubmittedDocument, WorkChangeDocument,
};

use serde::de::DeserializeOwned;

/// Compact JSON. The documents here have text as their keys, so that nothing can fail.
pub fn to_json(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).unwrap_or_else(|_| "null".to_owned())
}

/// Reads a document; the error names the field that is wrong.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let wrong = error.to_string();
        match field_before(text, error.line(), error.column()) {
            Some(field) if !wrong.contains(&format!("`{field}`")) => format!("{field}: {wrong}"),
            _ => wrong,
        }
    })
}

/// The last name of a field before this place.
fn field_before(text: &str, line: usize, column: usize) -> Option<String> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let end = before.checked_add(column)?.min(text.len());
    let head = text.as_bytes().get(..end)?;
    let colon = head.windows(2).rposition(|pair| pair == b"\":")?;
    let name = head[..colon].iter().rposition(|byte| *byte == b'"')?;
    String::from_utf8(head[name + 1..colon].to_vec()).ok()
}
