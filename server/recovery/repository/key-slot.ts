/**
 * The key slot of a repository: its own key, sealed under the recovery key. A drill uses the
 * cloud's copy of the repository's key, so it must also check that the recovery key opens the slot.
 */
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import type { DrillCheck } from '../drill/drill.ts';
import type { DrillStore } from '../drill/drill-store.ts';
import { RECOVERY_KEY } from '../store.ts';
import { readRecoveryKey } from './recovery-keys.ts';
import { slotDigest, unlockRepository } from './repository-head.ts';
import type { Target } from './target.ts';

export interface KeySlotDeps {
  readonly target: Target;
  readonly store: DrillStore;
  readonly changes: Changes;
  readonly secrets: { get(name: string): Promise<Buffer> };
  /**
   * True once an administrator has confirmed having the recovery key, which is not stored here from
   * then on.
   */
  readonly isKeyTaken: (repositoryId: string) => Awaitable<boolean>;
}

type Awaitable<T> = T | Promise<T>;

const NAME = 'recovery key';

export class KeySlot {
  readonly #deps: KeySlotDeps;

  constructor(deps: KeySlotDeps) {
    this.#deps = deps;
  }

  /** `typed`: the recovery key as typed by a person. Throws `target_unavailable`. */
  async check(repositoryId: string, typed: string | undefined): Promise<DrillCheck> {
    const { target, store, secrets, isKeyTaken } = this.#deps;
    const failed = (detail: string): DrillCheck => ({ name: NAME, state: 'failed', detail });
    const digest = await slotDigest(target).catch((error: Error) => error);
    if (isAppError(digest)) throw digest;
    if (digest instanceof Error) return failed(digest.message);
    if (typed !== undefined) return this.#open(digest, readRecoveryKey(typed));
    if (!(await isKeyTaken(repositoryId))) return this.#open(digest, await secrets.get(RECOVERY_KEY));
    const proven = await store.provenSlot(repositoryId);
    if (proven === digest) return { name: NAME, state: 'passed', detail: 'the key slot is unchanged' };
    if (proven !== null)
      return failed('the key slot was changed: the recovery key may not open the repository');
    const detail =
      'the recovery key was not tried since this cloud was updated or restored: run a drill with --with-key';
    return { name: NAME, state: 'skipped', detail };
  }

  async #open(digest: string, key: Uint8Array): Promise<DrillCheck> {
    const { target, store, changes } = this.#deps;
    try {
      const { repositoryId } = await unlockRepository(target, key);
      await changes.run(BACKGROUND, (change) => void change.add(store.setProvenSlot(repositoryId, digest)));
      return { name: NAME, state: 'passed', detail: 'the recovery key opens the repository' };
    } catch (error) {
      if (isAppError(error)) throw error;
      return { name: NAME, state: 'failed', detail: (error as Error).message };
    }
  }
}
