/** Writes the audit log entries of HTTP calls. */
import type {
  AuditEntry,
  AuditKind,
  AuditMember,
  AuditOutcome,
  AuditRule,
  AuditTrail,
} from '../calls/audit.ts';
import type { CallEntry, Recorder } from '../metadata/change.ts';
import { type AppError, ERRORS } from '../platform/errors.ts';
import { entryOf, type Given } from './exchange.ts';
import type { Route } from './route.ts';

export interface Rule extends AuditRule {
  readonly kind: AuditKind;
  /** Names of the params in the path. */
  readonly params: readonly string[];
  /** Members of the body whose names are logged when they are given; null: none are. */
  readonly changed: readonly string[] | null;
}

/** The rule of a route. */
export function auditRuleOf({ audit, method, changesNothing, path, body }: Route): Rule {
  const byMethod = method === 'GET' || changesNothing !== undefined ? 'none' : 'change';
  const params = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const changed = method === 'PATCH' ? Object.keys(schemaMembers(body)) : null;
  const rule = typeof audit === 'string' ? { kind: audit } : audit;
  return { kind: byMethod, ...rule, params, changed };
}

const MAX_DETAIL_BYTES = 2048;

/** True for calls that are not logged one by one. */
export const isQuiet = ({ kind }: Rule): boolean => kind === 'none' || kind === 'data';

/** Whether a refusal is logged; malformed, rate-limited and overload errors are not. */
export function isTold(status: number): boolean {
  return status >= 500 ? status === 500 : ![400, 405, 406, 413, 415, 422, 429].includes(status);
}

type Request = Given & { readonly params?: unknown; readonly body?: unknown };

/** The audit entries of a call whose rule is not `none`. */
export class AuditedCall {
  readonly #trail: AuditTrail;
  readonly #route: Route;
  readonly #rule: Rule;
  readonly #request: Request;
  #isRecorded = false;
  /** An earlier commit of the call has the entry. */
  #isStored = false;

  // biome-ignore lint/complexity/useMaxParams: what the call is made of
  constructor(trail: AuditTrail, route: Route, rule: Rule, request: Request) {
    this.#trail = trail;
    this.#route = route;
    this.#rule = rule;
    this.#request = request;
  }

  /** Adds the entry to the commit of the effect. */
  recorder(record: Recorder['record'], status: number): Recorder['record'] {
    return (response) => {
      this.#isRecorded = true;
      if (this.#isStored || !this.#hasEntry(response)) return record(response);
      return [...record(response), ...this.#trail.statements(this.#entry('done', status, response))];
    };
  }

  /** The entry alone, for the first of several commits. */
  first(status: number): CallEntry {
    return {
      statements: (response) => this.#trail.statements(this.#entry('done', status, response)),
      stored: () => {
        this.#isRecorded = true;
        this.#isStored = true;
      },
    };
  }

  #hasEntry(answer: unknown): boolean {
    return this.#rule.hasEntry?.(this.#request.principal, answer) ?? true;
  }

  /** The call has ended; `answer`: its response, unless streamed. */
  async answered(status: number, answer: unknown): Promise<void> {
    if (this.#isRecorded) return;
    const { kind } = this.#rule;
    if (!this.#hasEntry(answer)) return;
    const entry = this.#entry('done', status, answer);
    // A secret is sent only after its audit entry is stored.
    if (kind === 'secret') await this.#trail.write(entry);
    else this.#trail.note(entry);
  }

  /** A replayed response: its effect is logged already, but the response may contain a secret. */
  async replayed(status: number, body: string): Promise<void> {
    if (this.#rule.kind !== 'secret' || status >= 400) return;
    this.#isRecorded = false;
    await this.answered(status, JSON.parse(body));
  }

  refused(error: AppError): void {
    const status = ERRORS[error.code].http;
    if (!isTold(status)) return;
    const outcome = status === 500 ? 'failed' : 'refused';
    const entry = this.#entry(outcome, status, undefined);
    this.#trail.note({ ...entry, accountId: error.accountId ?? entry.accountId, code: error.code });
  }

  #entry(outcome: AuditOutcome, status: number, answer: unknown): AuditEntry {
    const { kind, target, account } = this.#rule;
    const { params, body } = this.#request;
    const from = { params, body, answer };
    const named = String(
      (target === undefined ? defaultTarget(this.#rule, from) : memberOf(from, target)) ?? '',
    );
    const entry = entryOf(this.#request, { action: this.#route.name, outcome, status, target: named });
    entry.detail = detailOf(this.#rule, body);
    const whose = account === undefined ? 0 : Number(memberOf(from, account));
    if (Number.isSafeInteger(whose) && whose > 0) entry.accountId = whose;
    // The response names the account that signed in.
    if (kind === 'sign-in' && entry.actorId === 0) {
      entry.actorId = entry.accountId;
      entry.actor = textOf(from, 'answer.username');
    }
    return entry;
  }
}

interface From {
  readonly params: unknown;
  readonly body: unknown;
  readonly answer: unknown;
}

function memberOf(from: From, path: AuditMember): string | number | undefined {
  const [part, name = ''] = path.split('.') as [keyof From, string];
  return textIn(from[part], name);
}

function textIn(value: unknown, name: string): string | number | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const member = (value as Record<string, unknown>)[name];
  return typeof member === 'string' || typeof member === 'number' ? member : undefined;
}

function textOf(from: From, path: AuditMember): string {
  return String(memberOf(from, path) ?? '');
}

function defaultTarget({ params }: Rule, from: From): unknown {
  if (params.length > 0) return params.map((name) => textIn(from.params, name) ?? '').join('/');
  const { answer } = from;
  if (typeof answer !== 'object' || answer === null) return '';
  const first = Object.keys(answer)[0] ?? '';
  return /^(?:id|name|[a-z]+_id)$/.test(first) ? textIn(answer, first) : '';
}

/** The logged members of the body, as JSON; for other changes, only their names. */
function detailOf({ detail = [], changed }: Rule, body: unknown): string {
  if (typeof body !== 'object' || body === null) return '';
  const given = body as Record<string, unknown>;
  const kept: Record<string, unknown> = {};
  for (const name of detail) if (name in given) kept[name] = given[name];
  if (changed !== null) kept.changed = changed.filter((name) => name in given);
  const text = JSON.stringify(kept);
  if (text === '{}') return '';
  return Buffer.byteLength(text) <= MAX_DETAIL_BYTES ? text : '{"too_long":true}';
}

function schemaMembers(schema: object = {}): Readonly<Record<string, unknown>> {
  return 'properties' in schema ? (schema.properties as Record<string, unknown>) : {};
}

/** A caller without permission, or with a key that is not valid here. */
export function noteTurnedAway(
  trail: AuditTrail | undefined,
  exchange: Given,
  { action, error }: TurnedAway,
): void {
  const status = ERRORS[error.code].http;
  const isRefusal = status === 403 || (status === 401 && error.code !== 'missing_api_key');
  if (!isRefusal) return;
  trail?.note(entryOf(exchange, { action, outcome: 'refused', status, code: error.code }));
}

interface TurnedAway {
  readonly action: string;
  readonly error: AppError;
}

interface Opened {
  readonly route: { readonly name: string; readonly opens?: true };
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** A WebSocket that gives access to a machine or a database. */
export function noteOpened(trail: AuditTrail | undefined, exchange: Given, { route, params }: Opened): void {
  if (route.opens !== true) return;
  const target = Object.values(params).join('/');
  trail?.note(entryOf(exchange, { action: route.name, target, outcome: 'done', status: 101 }));
}
