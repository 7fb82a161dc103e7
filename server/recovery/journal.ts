/**
 * What a restore must not undo: between two points a cloud writes down which keys there are, which passwords
 * were changed and which accounts were closed (docs/recovery-format.md). A point gives back what was revoked
 * after it; the journal takes it away again.
 */
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { Awaitable, Statement } from '../metadata/metadata.ts';
import { formatTime } from '../platform/clock.ts';
import type { JournalStore } from './journal-store.ts';

const FORMAT = 1;
const PAGE = 500;

/** `journals/<cloud>`, sealed. */
export interface Journal {
  readonly format: 1;
  /** YYYY-MM-DD HH:MM:SS. Of what came later nothing is known. */
  readonly written_at: string;
  /** Highest id ever given. */
  readonly last_account: number;
  /** Number of the ledger's last transfer. */
  readonly last_transfer: number;
  /** Id → whether it may be used, and a fingerprint of its password. Closed ones are left out. */
  readonly accounts: Readonly<Record<number, readonly [isActive: 0 | 1, password: string]>>;
  /** Id → its end, ms since 1970, and a fingerprint of what it may do. */
  readonly keys: Readonly<Record<string, readonly [expiresAt: number | null, rights: string]>>;
}

/** Throws an Error of one clear line. */
export function readJournal(bytes: Uint8Array): Journal {
  const journal = JSON.parse(Buffer.from(bytes).toString('utf8')) as Journal;
  if (journal.format === FORMAT) return journal;
  throw new Error(`the journal has format ${journal.format}, this Cloudlet knows ${FORMAT}: use a newer one`);
}

/** As of now, or a little later. */
export async function takeJournal(store: JournalStore, now: number): Promise<Journal> {
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

/** What a restored cloud has that was taken away after its point, and what it lacks. */
export interface Replay {
  readonly statements: readonly Statement[];
  /** Lines for the operator. */
  readonly told: readonly string[];
}

/** Compares restored metadata with what its cloud wrote down last. */
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
    told: [
      `What was revoked until ${journal.written_at} UTC stays so; of later nothing is known`,
      ...named('keys that were revoked or changed after the point are revoked', revoked),
      ...named('accounts that were closed or suspended after the point are suspended', blocked),
      ...named('accounts have no password, because it was changed after the point', changed),
      ...named('accounts that were made after the point are lost', lostAccounts),
      ...named('keys that were made after the point are lost', lostKeys),
      ...named('transfers of credits after the point are lost', journal.last_transfer - last_transfer),
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

/** Tells equal from different, and nothing of what it is made from to who cannot read the journal. */
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
    // Reads answer at once: without a turn of the loop nobody else would get theirs.
    await turn();
  }
}
