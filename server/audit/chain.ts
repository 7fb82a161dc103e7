/** The hash chain of the audit log: how its ranges are sealed and verified. */
import { createHash } from 'node:crypto';
import type { Reads } from '../metadata/metadata.ts';
import { type AuditRow, AuditStore, type SealRow } from './store.ts';

/** Bytes of a row besides its texts: numbers and index entries. */
const ROW_BYTES = 120;
const SEALS_AT_ONCE = 500;
/** The head before the first range. */
export const FIRST_HEAD = '0'.repeat(64);

/** The hash of a range and of all earlier ones. */
export interface AuditHead {
  readonly range: number;
  readonly hash: string;
}

export interface AuditVerification {
  readonly ok: boolean;
  /** Number of ranges, and of verified rows in them. */
  readonly ranges: number;
  readonly rows: number;
  /** Ranges whose rows have expired: only their hashes are left. */
  readonly removed: number;
  /** Rows without a seal yet. */
  readonly unsealed: number;
  readonly head: AuditHead | null;
  /** The first fault found; null: none. */
  readonly fault: string | null;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

function textOf(row: AuditRow): string {
  const { id, at, account_id, actor_id, actor, via, credential, address, agent, action } = row;
  const { target, outcome, status, code, request_id, detail, times } = row;
  return JSON.stringify([
    ...[id, at, account_id, actor_id, actor, via, credential, address, agent, action],
    ...[target, outcome, status, code, request_id, detail, times],
  ]);
}

export function digestOf(rows: readonly AuditRow[]): { readonly digest: string; readonly bytes: number } {
  const hash = createHash('sha256');
  let bytes = 0;
  for (const row of rows) {
    const text = textOf(row);
    bytes += Buffer.byteLength(text) + ROW_BYTES;
    hash.update(text).update('\n');
  }
  return { digest: hash.digest('hex'), bytes };
}

export function headAfter(
  before: string,
  { id, rows, digest }: Pick<SealRow, 'id' | 'rows' | 'digest'>,
): string {
  return sha256(`${before}\n${id}\n${rows}\n${digest}`);
}

/** Hash of the range; null: no such range. */
export async function sealHash(reads: Reads, range: number): Promise<string | null> {
  const [seal] = await new AuditStore(reads).seals(range - 1, 1);
  return seal?.id === range ? seal.head : null;
}

/** Reads every range again, and computes the chain. `expected`: a head that must be part of the chain. */
export async function verifyChain(reads: Reads, expected?: AuditHead): Promise<AuditVerification> {
  const store = new AuditStore(reads);
  const found = { ranges: 0, rows: 0, removed: 0 };
  let head = FIRST_HEAD;
  let fault: string | null = null;
  for (let after = 0; fault === null; ) {
    const seals = await store.seals(after, SEALS_AT_ONCE);
    for (const seal of seals) {
      fault = (await faultOf(store, seal, { before: head, number: after + 1 })) ?? notAs(expected, seal);
      if (fault !== null) break;
      head = seal.head;
      after = seal.id;
      found.ranges++;
      if (seal.removed_at === null) found.rows += seal.rows;
      else found.removed++;
    }
    if (seals.length < SEALS_AT_ONCE) break;
  }
  if (fault === null && expected !== undefined && expected.range > found.ranges)
    fault = `range ${expected.range} is missing; the last range is ${found.ranges}`;
  return {
    ok: fault === null,
    ...found,
    unsealed: await store.countUnsealed(),
    head: found.ranges === 0 ? null : { range: found.ranges, hash: head },
    fault,
  };
}

function notAs(expected: AuditHead | undefined, { id, head }: SealRow): string | null {
  if (expected?.range !== id || expected.hash === head) return null;
  return `range ${id} does not have the given hash: the log was replaced`;
}

async function faultOf(
  store: AuditStore,
  seal: SealRow,
  { before, number }: { before: string; number: number },
): Promise<string | null> {
  if (seal.id !== number) return `range ${number} is missing`;
  if (headAfter(before, seal) !== seal.head) return `range ${number} does not follow the one before it`;
  if (seal.removed_at !== null) return null;
  const rows = await store.rowsOf(seal.id);
  if (rows.length !== seal.rows)
    return `range ${number} has ${rows.length} rows, but was sealed with ${seal.rows}`;
  return digestOf(rows).digest === seal.digest ? null : `a row of range ${number} was changed`;
}
