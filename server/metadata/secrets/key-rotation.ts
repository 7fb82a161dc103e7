/**
 * Rotates the master key while the service runs: a new key seals from now on, every sealed value is
 * sealed again, and the old key is deleted when a whole pass has found no value under it. A kill at
 * any step loses nothing: both keys stay in the file until the last step, and the next call
 * continues, because finished values are under the new key.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../platform/errors.ts';
import type { MasterKeys } from '../../platform/master-key.ts';
import type { Membership } from '../../platform/membership.ts';
import type { Metadata } from '../metadata.ts';
import {
  SEALED_COLUMNS,
  type SealedColumn,
  SealedColumnsStore,
  type SealedRow,
} from './sealed-columns-store.ts';

export interface KeyRotationDeps {
  readonly metadata: Metadata;
  readonly keys: MasterKeys;
  /**
   * Time to wait, ms, before the deciding pass, for requests that sealed a value under the old key and have
   * not committed it yet. 0 is safe only if no request runs. Default 10 seconds.
   */
  readonly waitMs?: number;
  /** Called after each batch with the number of re-encrypted values so far. */
  readonly onProgress?: (resealed: number) => void;
  /** Called before the old keys are deleted; if it throws, the next call continues. */
  readonly assertDone?: () => void;
}

export interface KeyRotation {
  /** The id of the key that seals everything now. */
  readonly keyId: string;
  readonly retiredIds: readonly string[];
  readonly resealed: number;
}

const BATCH_ROWS = 100;
const WAIT_MS = 10_000;

/** Rotates the master key, or finishes an interrupted rotation. Resolves when the old keys are deleted. */
export async function rotateMasterKey(deps: KeyRotationDeps): Promise<KeyRotation> {
  const { keys } = deps;
  if (keys.ids().length === 1) keys.addKey();
  const resealer = new Resealer(deps);
  await resealer.untilClean();
  await delay(deps.waitMs ?? WAIT_MS);
  // Commits are stored in order: after this one, no earlier commit is pending.
  await deps.metadata.commit([]);
  await resealer.untilClean();
  deps.assertDone?.();
  const retiredIds = keys.ids().filter((id) => id !== keys.currentId);
  for (const id of retiredIds) keys.retire(id);
  return { keyId: keys.currentId, retiredIds, resealed: resealer.count };
}

/** The same while other nodes might run. Throws `other_nodes_run`: the key is in a file of each node. */
export async function rotateWhileAlone({
  membership,
  ...deps
}: KeyRotationDeps & {
  readonly membership: Pick<Membership, 'nodes' | 'isGone'>;
}): Promise<{ key_id: string; resealed: number }> {
  const assertAlone = () => {
    const others = membership.nodes().filter(({ runId }) => !membership.isGone(runId)).length - 1;
    if (others <= 0) return;
    throw new AppError('other_nodes_run', 'The master key can only be rotated while one node runs', {
      hint: 'Stop the other nodes, rotate, copy master.key into their data directories, and start them',
    });
  };
  assertAlone();
  // A node that started meanwhile may have sealed values under the old key; later nodes cannot open them.
  const { keyId, resealed } = await rotateMasterKey({ ...deps, assertDone: assertAlone });
  return { key_id: keyId, resealed };
}

class Resealer {
  readonly #deps: KeyRotationDeps;
  readonly #store: SealedColumnsStore;
  count = 0;

  constructor(deps: KeyRotationDeps) {
    this.#deps = deps;
    this.#store = new SealedColumnsStore({ metadata: deps.metadata });
  }

  /** Repeats passes until one finds nothing to do. */
  async untilClean(): Promise<void> {
    for (let found = true; found; ) {
      found = false;
      for (const column of SEALED_COLUMNS) {
        if (await this.#pass(column)) found = true;
      }
    }
  }

  /** True if the pass found a value under an older key. */
  async #pass(column: SealedColumn): Promise<boolean> {
    let found = false;
    let after: SealedRow | null = null;
    for (;;) {
      const rows: SealedRow[] = await this.#store.page(column, after, BATCH_ROWS);
      const last = rows.at(-1);
      if (last === undefined) return found;
      const old = rows.filter((row) => this.#deps.keys.keyIdOf(row.sealed) !== this.#deps.keys.currentId);
      if (old.length > 0) {
        found = true;
        await this.#reseal(column, old);
      }
      after = last;
    }
  }

  async #reseal(column: SealedColumn, rows: readonly SealedRow[]): Promise<void> {
    const { keys, metadata, onProgress } = this.#deps;
    const results = await metadata.commit(
      rows.map((row) => {
        const context = column.context(row);
        return this.#store.replacement(column, row, keys.seal(keys.unseal(row.sealed, context), context));
      }),
    );
    for (const { changes } of results) this.count += changes;
    onProgress?.(this.count);
  }
}
