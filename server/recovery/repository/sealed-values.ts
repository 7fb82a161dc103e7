/** Tries to open all sealed values of a point's snapshot with its keys before the point is complete. */
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import type { Reads } from '../../metadata/metadata.ts';
import {
  SEALED_COLUMNS,
  type SealedColumn,
  SealedColumnsStore,
} from '../../metadata/secrets/sealed-columns-store.ts';
import { AppError } from '../../platform/errors.ts';
import { MasterKeys } from '../../platform/master-key.ts';
import { KEY_FILE, KEYS } from '../points/cloud-sources.ts';
import { type Component, entriesOf, type Gap } from '../points/manifest.ts';
import type { Repository } from './repository.ts';

/** The keys of a point. */
export interface PointKeys {
  ids(): string[];
  keyIdOf(sealed: Uint8Array): string;
  /** Throws AppError `data_corrupted`. */
  unseal(sealed: Uint8Array, context: string): Buffer;
}

const PAGE = 200;

interface Point {
  readonly repository: Repository;
  /** The point's components. */
  readonly written: readonly Component[];
  /** The point's metadata. */
  readonly reads: Reads;
  readonly signal: AbortSignal;
}

/** Same as trySealedValues, with the keys read back from the repository. */
export async function tryPointKeys({ repository, written, reads, signal }: Point): Promise<readonly Gap[]> {
  for (const component of written) {
    if (component.name !== KEYS) continue;
    for await (const { pieces } of entriesOf(repository, component)) {
      const keys = MasterKeys.read(await text(repository.read(pieces)), KEY_FILE);
      return trySealedValues(reads, keys, signal);
    }
  }
  throw new Error(`the point has no ${KEY_FILE}`);
}

/**
 * Opens every sealed value of the snapshot with `keys`. Resolves with a gap for each column with
 * values that do not open because they are damaged in this cloud already. Throws AppError
 * `data_corrupted` if a key is missing.
 */
export async function trySealedValues(
  reads: Reads,
  keys: PointKeys,
  signal: AbortSignal,
): Promise<readonly Gap[]> {
  const store = new SealedColumnsStore({ metadata: reads });
  const known = new Set(keys.ids());
  const gaps: Gap[] = [];
  for (const column of SEALED_COLUMNS) {
    const damaged = await damagedOf(column, { store, keys, known, signal });
    const [first] = damaged;
    if (first === undefined) continue;
    const reason = `${damaged.length} sealed values are damaged, the first is ${first}`;
    gaps.push({ component: `${column.table}.${column.column}`, reason });
  }
  return gaps;
}

interface Trial {
  readonly store: SealedColumnsStore;
  readonly keys: PointKeys;
  readonly known: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/** Contexts of the values that do not open. */
async function damagedOf(column: SealedColumn, { store, keys, known, signal }: Trial): Promise<string[]> {
  const damaged: string[] = [];
  let page = await store.page(column, null, PAGE);
  for (; page.length > 0; page = await store.page(column, page.at(-1) ?? null, PAGE)) {
    // Reads complete synchronously: without yielding, other requests would starve.
    await turn();
    signal.throwIfAborted();
    for (const row of page) {
      const context = column.context(row);
      if (!opens(row.sealed, context, { keys, known })) damaged.push(context);
    }
  }
  return damaged;
}

function opens(sealed: Uint8Array, context: string, { keys, known }: Pick<Trial, 'keys' | 'known'>): boolean {
  let keyId: string | undefined;
  try {
    keyId = keys.keyIdOf(sealed);
    keys.unseal(sealed, context);
    return true;
  } catch (error) {
    if (keyId === undefined || known.has(keyId)) return false;
    throw new AppError('data_corrupted', `master.key has no key ${keyId}, which encrypts ${context}`, {
      hint: 'Restore your copy of master.key',
      cause: error,
    });
  }
}
