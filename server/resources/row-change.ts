/**
 * A change of a resource's row (a machine's or a database's). The row holds the desired state, and
 * `generation` counts its changes, so that work based on an older one is refused; events for the owner are
 * part of the same commit.
 */
import type { Statement } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';

export interface ResourceRow<State extends string = string> {
  readonly account_id: number;
  readonly name: string;
  readonly region: string;
  readonly state: State;
  readonly reason_code: string | null;
  readonly reason_message: string | null;
  readonly generation: number;
  /** ms since 1970. */
  readonly state_changed_at: number;
}

/** Why a resource is in its state, as shown to its owner. */
export interface Reason {
  readonly code: string;
  readonly message: string;
}

export function reasonOf({
  reason_code: code,
  reason_message: message,
}: Pick<ResourceRow, 'reason_code' | 'reason_message'>): Reason | null {
  return code === null ? null : { code, message: message ?? '' };
}

/** An event for the owner's webhooks. */
export interface ResourceEvent<Type extends string> {
  readonly accountId: number;
  readonly type: Type;
  readonly data: Readonly<Record<string, unknown>>;
  /** ms since 1970. */
  readonly at: number;
}

/** Creates the statements that store an event. */
export type Announce<Type extends string> = (event: ResourceEvent<Type>) => readonly Statement[];

/** Allowed next states of each state. */
export type Following<State extends string> = Readonly<Record<State, readonly State[]>>;

/** Throws unless `after` may follow `before`; callers cannot cause this. */
export function assertFollows<State extends string>(
  following: Following<State>,
  before: State,
  after: State,
) {
  if (before === after || following[before].includes(after)) return;
  throw new Error(`a resource that is ${before} cannot become ${after}`);
}

/** The row after a change at `now`, ms since 1970. */
export function nextRow<Row extends ResourceRow>(before: Row, wanted: Partial<Row>, now: number): Row {
  const after = { ...before, ...wanted, generation: before.generation + 1 };
  return { ...after, state_changed_at: after.state === before.state ? before.state_changed_at : now };
}

/** The event of this `type`; `own`: data specific to the kind of resource. */
export function eventOf<Type extends string>(
  type: Type,
  row: ResourceRow,
  { at, ...own }: { readonly at: number } & Readonly<Record<string, unknown>>,
): ResourceEvent<Type> {
  const { account_id: accountId, name, region, state } = row;
  const shown = state === 'deleting' ? 'deleted' : state;
  return { accountId, type, data: { ...own, name, region, state: shown, reason: reasonOf(row) }, at };
}

/** The refusal of an update whose row has changed since it was read. */
export function writeConflict(noun: 'machine' | 'database'): AppError {
  return new AppError('write_conflict', `The ${noun} was changed meanwhile; try again`);
}
