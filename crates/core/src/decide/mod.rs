//! Pure decisions: facts in, answer out.

mod admission;
mod adoption;
mod blocking;
mod breaker;
mod budget;
mod containers;
mod convoy;
mod delivery;
mod dispatch_order;
mod dispatch_plan;
mod forecast;
mod gates;
mod graph;
mod guard;
mod home_call;
mod host;
mod identity;
mod lease;
mod lint;
mod mention;
mod new_host;
mod outline;
mod parking;
mod placement;
mod readiness;
mod redispatch;
mod run_limit;
mod scheduling_reasons;
mod sessions;
mod staging;
mod stalls;
mod transition;
mod usage_history;
mod wait_class;
mod waits;
mod worker_rights;

pub use admission::{AdmissionRequest, Cap, Caps, Occupancy, ReviewCap, admit};
pub use adoption::{AdoptionFacts, OldState, Successor, adopt};
pub use blocking::{ChildrenFacts, TargetFacts, edge_blocks};
pub use breaker::{
    AfterFailure, BACKOFF_MAX, START_FAILURES_MAX, StartFailure, after_start_failure, backoff,
    is_due_within,
};
pub use budget::{Budget, BudgetEnd, BudgetKind, BudgetLimit, BudgetScope, held_by};
pub use containers::{
    ContainerChange, ContainerRules, Members, PARTS_DONE, STEPS_DONE, container_change,
    convoy_change,
};
pub use convoy::{
    ConvoyState, INTEGRATION, LANDED, integration_base, is_bookkeeping, is_owned, lands_by_itself,
    refuse_convoy_status,
};
pub use delivery::{NOTICE_ATTEMPTS_MAX, NOTICE_WAIT_MAX, next_delivery};
pub use dispatch_order::{DispatchOrder, OrderPosition, urgency};
pub use dispatch_plan::{DispatchPlan, PlanReason, Slots, plan_dispatch};
pub use forecast::{Forecast, ForecastJob, ForecastLimits, RunDurations, critical_path, forecast};
pub use gates::{GateFacts, GateVerdict, StartedWorkflowRun, choose_workflow_run, judge_gate};
pub use graph::{cycles, find_path, find_path_to, shown_path, waves};
pub use guard::{
    DiskGuard, LoadGuard, MEMORY_GROWTH_TIME, MachineDisk, MachineFacts, MachineLoad,
    MachineMemory, MemoryFloor, MemoryGuard, learn_memory,
};
pub use home_call::{admit_home_call, is_repeatable_home_call};
pub use host::{HostPlace, HostVerdict, OldPlace, judge_host};
pub use identity::{IdSeed, adaptive_length, resolve_partial};
pub use lease::{HOST_CLOCK_DIFFERENCE_MAX, HostMode, HostState, LeaseTimes, WorkerStep};
pub use lint::{BeadSection, missing_sections};
pub use mention::{mentions, rewrite_ids};
pub use new_host::{CandidateFacts, CandidateNeeds, NewDirectory};
pub use outline::outline;
pub use parking::{
    FailureCause, LIMIT_AGAIN_MIN, LIMIT_MAX, PARK_TIME, ParkChange, ParkHold, RAMP_STEP,
    RunEvidence, STRIKE_WITHIN, STRIKES_MAX, USAGE_LIMIT_MIN, after_run, hold, limited, proven_at,
    ramp, run_evidence,
};
pub use placement::{Fleet, HostFacts, HostRefusal, PlacementAnswer, PlacementNeeds};
pub use readiness::{ReadinessFacts, WaitReason, wait_reasons};
pub use redispatch::{AfterLoss, LossCost, LossFacts, after_loss, loss_of};
pub use run_limit::{LimitStep, LimitUse, RunLimits, RunProgress, limit_step};
pub use scheduling_reasons::{
    RigFacts, SchedulerFacts, SchedulingFacts, context_reasons, is_stranded, offer_reasons,
    rig_reasons, unscheduled_reasons,
};
pub use sessions::{SessionNews, needs_fresh_session, sessions_in_vain};
pub use staging::{
    FindingCategory, GatedMember, MemberRole, StageFacts, StagePlan, StagedMember, StagingFinding,
    stage,
};
pub use stalls::{SilenceChange, WorkerActivity, silence_change};
pub use transition::{
    LiveRun, RunEffect, Transition, TransitionFacts, Verb, VerbActor, VerbDecision, VerbRefusal,
    decide,
};
pub use usage_history::UsageHistory;
pub use wait_class::{ContextWait, WaitClass, context_wait};
pub use waits::{WaitEdge, waits};
pub use worker_rights::{
    BeadRelation, Right, WorkerProof, WorkerRights, admit_worker, check_refused, right_needed,
    right_refused, table_right,
};
