/**
 * The journal of revocations that a restore must not undo: between two points, a cloud records its
 * keys, changed passwords and closed accounts (docs/recovery-format.md). A restored point would
 * give back access that was revoked after it; the journal revokes it again.
 */
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { Awaitable, Statement } from '../../metadata/metadata.ts';
import { type Clock, formatTime, readTime } from '../../platform/clock.ts';
import type { Manifest } from '../points/manifest.ts';
import type { JournalStore } from './journal-store.ts';
import { Damaged } from './piece-box.ts';
import type { Repository } from './repository.ts';

const FORMAT = 1;
const PAGE = 500;

/** `journals/<cloud>`, sealed. */
export interface Journal {
  readonly format: 1;
  /** YYYY-MM-DD HH:MM:SS. Later changes are unknown. */
  readonly written_at: string;
  /** Highest id ever assigned. */
  readonly last_account: number;
  /** Number of the ledger's last transfer. */
  readonly last_transfer: number;
  /**
   * Keyed by account id: whether the account is active, and a fingerprint of its password. Closed accounts
   * are omitted.
   */
  readonly accounts: Readonly<Record<number, readonly [isActive: 0 | 1, password: string]>>;
  /** Keyed by key id: expiry, ms since 1970, and a fingerprint of its permissions. */
  readonly keys: Readonly<Record<string, readonly [expiresAt: number | null, rights: string]>>;
}

/** Throws an Error with a one-line message. */
function readJournal(bytes: Uint8Array): Journal {
  const journal = JSON.parse(Buffer.from(bytes).toString('utf8')) as Journal;
  if (journal.format === FORMAT) return journal;
  throw new Error(`the journal has format ${journal.format}, this Cloudlet knows ${FORMAT}: use a newer one`);
}

/** State at the time of the call, or slightly later. */
async function takeJournal(store: JournalStore, now: number): Promise<Journal> {
  const accounts: Record<number, [0 | 1, string]> = {};
  for await (const { id, is_active, password_hash } of pages((after: number | undefined) =>
    store.accounts(after, PAGE),
  )) {
    accounts[id] = [is_active, fingerprint(password_hash)];
  }
  const keys: Record<string, [number | null, string]> = {};
  for await (const { id, expires_at, rights } of pages((after: string | undefined) =>
    store.keys(after, PAGE),
  )) {
    keys[id] = [expires_at, fingerprint(rights)];
  }
  const { last_account, last_transfer } = await store.heads();
  return { format: 1, written_at: formatTime(now), last_account, last_transfer, accounts, keys };
}

/** Changes that repeat revocations in a restored cloud, and the data that it lost. */
export interface Replay {
  readonly statements: readonly Statement[];
  /** Lines for the operator. */
  readonly report: readonly string[];
}

/** Compares restored metadata with the last journal of its cloud. */
export async function replayJournal(journal: Journal, store: JournalStore): Promise<Replay> {
  const revoked: string[] = [];
  const ends: Record<string, number> = {};
  const knownKeys = new Set<string>();
  for await (const { id, expires_at, rights } of pages((after: string | undefined) =>
    store.keys(after, PAGE),
  )) {
    knownKeys.add(id);
    const [expiresAt, was] = journal.keys[id] ?? [null, ''];
    if (was !== fingerprint(rights)) revoked.push(id);
    else if (expiresAt !== null && expiresAt !== expires_at) ends[id] = expiresAt;
  }
  const blocked: number[] = [];
  const changed: number[] = [];
  const knownAccounts = new Set<number>();
  for await (const { id, is_active, password_hash } of pages((after: number | undefined) =>
    store.accounts(after, PAGE),
  )) {
    knownAccounts.add(id);
    const [isActive, password] = journal.accounts[id] ?? [0, fingerprint(password_hash)];
    if (isActive === 0 && is_active === 1) blocked.push(id);
    if (password !== fingerprint(password_hash)) changed.push(id);
  }
  const lostKeys = Object.keys(journal.keys).filter((id) => !knownKeys.has(id));
  const lostAccounts = Object.keys(journal.accounts).filter((id) => !knownAccounts.has(Number(id)));
  const { last_transfer } = await store.heads();
  return {
    statements: [
      ...store.revoke(revoked),
      ...store.endKeys(ends),
      ...store.block(blocked),
      ...store.forgetPasswords(changed),
      ...store.skipAccounts(journal.last_account),
    ],
    report: [
      `Revocations up to ${journal.written_at} UTC are applied; later ones are unknown`,
      ...named('API keys revoked or changed after the point are revoked', revoked),
      ...named('accounts closed or suspended after the point are suspended', blocked),
      ...named('accounts have no password because it was changed after the point', changed),
      ...named('accounts created after the point are lost', lostAccounts),
      ...named('API keys created after the point are lost', lostKeys),
      ...named('credit transfers after the point are lost', journal.last_transfer - last_transfer),
    ],
  };
}

const SHOWN = 20;

function named(what: string, which: readonly (string | number)[] | number): string[] {
  const [count, names] = typeof which === 'number' ? [which, []] : [which.length, which.slice(0, SHOWN)];
  if (count <= 0) return [];
  const more = names.length > 0 && count > names.length ? ', …' : '';
  return [`${count} ${what}${names.length > 0 ? `: ${names.join(', ')}${more}` : ''}`];
}

/** Detects changes without revealing its input to readers of the journal. */
function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}

async function* pages<Id, Row extends { readonly id: Id }>(
  page: (after: Id | undefined) => Awaitable<Row[]>,
): AsyncGenerator<Row> {
  for (let after: Id | undefined; ; ) {
    const rows = await page(after);
    yield* rows;
    after = rows.at(-1)?.id;
    if (rows.length < PAGE) return;
    // Reads complete synchronously: without yielding, other requests would starve.
    await turn();
  }
}

export interface JournalsDeps {
  readonly store: JournalStore;
  readonly clock: Clock;
  /** undefined: none yet, because no point was created. */
  readonly find: () => Promise<Repository | undefined>;
  readonly cloud: () => Promise<string>;
}

export class Journals {
  readonly #deps: JournalsDeps;

  constructor(deps: JournalsDeps) {
    this.#deps = deps;
  }

  /** Replaces the journal. It is not synced: a power failure of the target may lose one minute. */
  async write(): Promise<void> {
    const { store, clock, find, cloud } = this.#deps;
    const repository = await find();
    if (repository === undefined) return;
    const journal = await takeJournal(store, clock.now());
    await repository.putJournal(await cloud(), Buffer.from(JSON.stringify(journal)));
  }
}

/** The newest journal of the point's cloud, or the reason why there is none. */
export async function findJournal(
  repository: Repository,
  { cloud, cut_at: cutAt }: Manifest,
): Promise<Journal | string> {
  if (cloud === undefined) return 'the point was created by a version of Cloudlet without journals';
  try {
    const bytes = await repository.getJournal(cloud);
    if (bytes === undefined) return 'no journal found';
    const journal = readJournal(bytes);
    const isOlder = readTime('written_at', journal.written_at) < readTime('cut_at', cutAt);
    return isOlder ? 'the journal is older than the point' : journal;
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return `the journal is damaged: ${error.message}`;
  }
}
