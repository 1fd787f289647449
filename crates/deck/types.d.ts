// The types of the documents, taken from the description of the API.
import type { components, paths } from "./openapi";

type Schemas = components["schemas"];
type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : never;
type Success<T> = T extends { responses: { 200: infer Answer } } ? Json<Answer> : never;

/** Paths that can be read. */
export type ReadPath = { [P in keyof paths]: paths[P] extends { get: object } ? P : never }[keyof paths];
/** Paths that can be written to. */
export type WritePath = { [P in keyof paths]: paths[P] extends { post: object } | { patch: object } | { delete: object } ? P : never }[keyof paths];
export type ReadAnswer<P extends ReadPath> = paths[P] extends { get: infer Get } ? Success<Get> : never;

export interface Parameters {
  path?: Record<string, string>;
  query?: Record<string, string | number | boolean | null | undefined>;
}

export type Session = ReadAnswer<"/api/v1/session">;
export type Town = ReadAnswer<"/api/v1/town">;
export type InboxItem = ReadAnswer<"/api/v1/inbox">[number] & Partial<Schemas["InboxMessageDocument"]>;
export type BoardLane = ReadAnswer<"/api/v1/board">["lanes"][number];
export type BoardCard = BoardLane["items"][number];
export type RunRow = ReadAnswer<"/api/v1/runs/{id}">;
export type MergeRequest = Schemas["MergeRequestDocument"];
export type ReviewNote = Schemas["ReviewDocument"];
export type TranscriptEvent = Schemas["TranscriptEventDocument"];
export type SearchResult = ReadAnswer<"/api/v1/search">["items"][number];
/** A bead as `bd show --json` prints it; the description of the API has no type for it. */
export interface BeadRecord {
  id: string;
  title: string;
  description?: string;
  status: string;
  priority?: number;
  issue_type?: string;
  assignee?: string;
  created_at: string;
  updated_at: string;
}
export type ConvoyGraph = ReadAnswer<"/api/v1/convoys/{id}/graph">;
export type ConvoyTimeline = ReadAnswer<"/api/v1/convoys/{id}/timeline">;
export type BurnHour = ReadAnswer<"/api/v1/burn">["hours"][number];

/** A screen of a terminal, as `/api/v1/runs/{id}/screen` sends it. */
export interface Screen {
  run: string;
  rows: { t: string; s?: string }[][];
  cols: number;
  lines: number;
  cursor?: { row: number; col: number };
  ended?: boolean;
}

/** An event of the town, as `/api/v1/events` sends it. */
export interface TownEvent {
  number: number;
  event_type: string;
  issue_id?: string;
  rig?: string;
  run?: string;
  actor: string;
  created_at: string;
  payload: unknown;
}
