/**
 * How much was sent of each bucket. Kept in memory and written every few seconds, so that a download costs no
 * write; a crash forgets at most those seconds, in the owner's favour.
 */
import type { Metadata } from '../metadata/metadata.ts';
import type { StorageBilling } from './storage-billing.ts';

export interface EgressDeps {
  readonly metadata: Metadata;
  readonly billing: Pick<StorageBilling, 'bytesSent'>;
}

const STATEMENTS_PER_COMMIT = 500;

export class Egress {
  readonly #deps: EgressDeps;
  #pending = new Map<number, number>();
  #isWriting = false;

  constructor(deps: EgressDeps) {
    this.#deps = deps;
  }

  sent(bucketId: number, bytes: number): void {
    this.#pending.set(bucketId, (this.#pending.get(bucketId) ?? 0) + bytes);
  }

  /** Writes what has gathered. What could not be stored is kept for the next call. */
  async flush(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    const { metadata, billing } = this.#deps;
    const entries = [...this.#pending];
    this.#pending = new Map();
    let written = 0;
    try {
      for (; written < entries.length; written += STATEMENTS_PER_COMMIT) {
        const part = entries.slice(written, written + STATEMENTS_PER_COMMIT);
        await metadata.commit(part.map(([bucketId, bytes]) => billing.bytesSent(bucketId, bytes)));
      }
    } catch (error) {
      for (const [bucketId, bytes] of entries.slice(written)) this.sent(bucketId, bytes);
      throw error;
    } finally {
      this.#isWriting = false;
    }
  }
}
