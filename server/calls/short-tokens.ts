/**
 * Short-lived secrets: codes of logins, and used tickets. They are rows, so that every node accepts
 * those issued by another; only hashes of the secrets are stored.
 */
import { CommitRejected, type Metadata, type Reads, type Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import {
  type OpenToken,
  type ShortTokenName,
  type ShortTokenRow,
  ShortTokensStore,
} from './short-tokens-store.ts';

export interface NewToken extends ShortTokenName {
  /** The hash of a second secret. */
  readonly otherHash?: string;
  /** The account or address whose tokens are limited. */
  readonly owner: string;
  /** JSON. */
  readonly content: string;
  readonly lifeMs: number;
}

/** Limits of open tokens; above them, a new token replaces an open one. */
export interface Room {
  readonly maxAll: number;
  /** Maximum per owner; beyond it, the owner's oldest ends. */
  readonly maxPerOwner: number;
  /** Chooses the token to replace when the total is reached. Default: the oldest of the owner with most. */
  readonly displaced?: (open: readonly OpenToken[]) => OpenToken | undefined;
}

export interface ShortTokensDeps {
  readonly metadata: Reads & Pick<Metadata, 'commit'>;
  readonly clock: Clock;
}

export class ShortTokens {
  readonly #deps: ShortTokensDeps;
  readonly #store: ShortTokensStore;

  constructor(deps: ShortTokensDeps) {
    this.#deps = deps;
    this.#store = new ShortTokensStore(deps.metadata);
  }

  /** undefined: unknown, used or expired. */
  async find(name: ShortTokenName): Promise<ShortTokenRow | undefined> {
    return this.#store.find(name, this.#deps.clock.now());
  }

  /** Like find(), by the hash of the second secret. */
  async findByOther(otherHash: string): Promise<ShortTokenRow | undefined> {
    return this.#store.findByOther(otherHash, this.#deps.clock.now());
  }

  /**
   * Makes room if needed, and adds the token, with `also` in the same commit. False: one of its
   * secrets exists already.
   */
  async add({ lifeMs, ...token }: NewToken, room?: Room, also: readonly Statement[] = []): Promise<boolean> {
    const createdAt = this.#deps.clock.now();
    const dropped = room === undefined ? [] : await this.#makeRoom(token, room, createdAt);
    const added = this.#store.insert({ ...token, createdAt, endsAt: createdAt + lifeMs });
    return this.#tries([...dropped, added, ...also]);
  }

  /** Removes the token. False: another request has removed it. */
  take(name: ShortTokenName): Promise<boolean> {
    return this.#tries([{ ...this.#store.delete(name), expectChanges: 1 }]);
  }

  /** Changes its content, with `also` in the same commit. False: it is no longer `was`. */
  change(
    name: ShortTokenName,
    { also = [], ...content }: { was: string; becomes: string; also?: readonly Statement[] },
  ): Promise<boolean> {
    return this.#tries([{ ...this.#store.setContent(name, content), expectChanges: 1 }, ...also]);
  }

  /** Deletes expired tokens. */
  async sweep(): Promise<void> {
    await this.#deps.metadata.commit([this.#store.deleteEnded(this.#deps.clock.now())]);
  }

  async #makeRoom({ kind, owner }: Omit<NewToken, 'lifeMs'>, room: Room, now: number): Promise<Statement[]> {
    const { maxAll, maxPerOwner, displaced = oldestOfMost } = room;
    const { all, own } = await this.#store.count(kind, owner, now);
    if (own >= maxPerOwner) return [this.#store.deleteOldest(kind, owner)];
    const one = all < maxAll ? undefined : displaced(await this.#store.open(kind, now));
    return one === undefined ? [] : [this.#store.delete({ kind, hash: one.hash })];
  }

  async #tries(statements: readonly Statement[]): Promise<boolean> {
    try {
      await this.#deps.metadata.commit(statements);
      return true;
    } catch (error) {
      if (error instanceof CommitRejected) return false;
      throw error;
    }
  }
}

/** So that owners with few tokens lose none to those with many. */
function oldestOfMost(open: readonly OpenToken[]): OpenToken | undefined {
  const counts = new Map<string, number>();
  for (const { owner } of open) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  const most = Math.max(0, ...counts.values());
  return open.find(({ owner }) => counts.get(owner) === most);
}
