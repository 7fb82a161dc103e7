/** Entries of the audit log. Edges create them; the domain audit/ stores and shows them. */
import type { Statement } from '../metadata/metadata.ts';
import { OPERATOR, type Principal } from './principal.ts';

/**
 * `change`: the call changes something, or opens or exports data of the account. `secret`: its
 * response contains a secret, so its entry is stored before the response. `sign-in`: it identifies
 * the caller. `none`: no entry, unless it is refused for lack of permission. `data`: likewise,
 * except for reads and writes of objects in buckets whose setting requires entries.
 */
export type AuditKind = 'change' | 'secret' | 'sign-in' | 'none' | 'data';

/** A member of the call: `params.id`, `body.name`, `answer.id`. */
export type AuditMember = `${'params' | 'body' | 'answer'}.${string}`;

/** A route's settings for its entries. */
export interface AuditRule {
  readonly kind?: AuditKind;
  /** Identifies the resource. Default: the params, else the id in the response. */
  readonly target?: AuditMember;
  /** Account that owns the resource. Default: the caller's. */
  readonly account?: AuditMember;
  /** Members of the body that are logged: never a secret, nor users' own content. */
  readonly detail?: readonly string[];
  /** False: a call with this response has no entry, for example a `secret` without one. */
  readonly hasEntry?: (principal: Principal, answer: unknown) => boolean;
}

/** `done`; `refused`: it had no effect; `failed`: a fault of ours, so it may have had one. */
export type AuditOutcome = 'done' | 'refused' | 'failed';

/** One entry. Never contains passwords, keys, tokens, bodies, SQL, object metadata or signed links. */
export interface AuditEntry {
  /** The account whose resources are concerned; 0: the cloud, or unknown. */
  readonly accountId: number;
  /** The account that acted, and its name; 0: the operator on the host, or unknown. */
  readonly actorId: number;
  readonly actor: string;
  readonly via: string;
  /** Id of the access key; empty for sessions. */
  readonly credential: string;
  readonly address: string;
  readonly agent: string;
  /** The operation's id. */
  readonly action: string;
  /** Id or name of the resource. */
  readonly target: string;
  readonly outcome: AuditOutcome;
  readonly status: number;
  /** Code of the error; empty: none. */
  readonly code: string;
  readonly requestId: string;
  /** A JSON object of at most 2 KiB; empty: none. */
  readonly detail: string;
}

/** The actor of changes that the cloud makes by itself. */
const CLOUD_ACTOR = 'cloudlet';
/** Actors that have no account: nobody may register with their names. */
export const ACTORS: ReadonlySet<string> = new Set([CLOUD_ACTOR, OPERATOR.username]);

/** Changes of an account by the cloud itself, without a call. */
export type OwnAction = 'suspendExpiredAccount' | 'removeClosedAccount';

/** The audit entry of the action, for the commit of its effect. */
export function entryOfCloud(
  action: OwnAction,
  { accountId, username }: { readonly accountId: number; readonly username: string },
): AuditEntry {
  const nobody = { actorId: 0, actor: CLOUD_ACTOR, via: 'cloud', credential: '', address: '', agent: '' };
  const detail = JSON.stringify({ username });
  const target = String(accountId);
  return {
    ...nobody,
    accountId,
    action,
    target,
    outcome: 'done',
    status: 200,
    code: '',
    requestId: '',
    detail,
  };
}

/** An entry as webhooks send it. */
export interface AuditEvent {
  readonly accountId: number;
  readonly outcome: AuditOutcome;
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface AuditTrail {
  /**
   * For the commit of the effect. Empty if the account did this so often that its entries are only
   * counted.
   */
  statements(entry: AuditEntry, allowance?: 'data'): readonly Statement[];
  /** Stores the entry now. */
  write(entry: AuditEntry): Promise<void>;
  /** Stores the entry within a second; very frequent ones of a sender are only counted. */
  note(entry: AuditEntry, allowance?: 'data'): void;
}

/** An object that is read or written, and the account of its bucket. */
export interface DataTarget {
  readonly accountId: number;
  readonly bucket: string;
  readonly name: string;
}

/** Entries about objects, which storage requests if the bucket's setting requires them. */
export interface DataAudit {
  /** For the commit of the write. */
  wrote(target: DataTarget): readonly Statement[];
  read(target: DataTarget): void;
}
