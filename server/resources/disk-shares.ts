/**
 * While the host's disk fills, accounts without granted credits keep to a share of it with all that they have
 * on it: objects, databases, machines. Quotas count what may be written, and this what is. So the account
 * that grows is refused first, and others still have room.
 */
import type { Awaitable } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';

/** The disk with the data directory. */
export interface SharedDisk {
  readonly totalBytes: number;
  /** Less what is admitted and not yet written. */
  readonly freeBytes: number;
}

/** Bytes on the disk of one kind, by account id. */
export type HeldBytes = () => Awaitable<ReadonlyMap<number, number>>;

export interface DiskSharesDeps {
  readonly clock: Clock;
  /** Percentage of the disk for all these accounts together. */
  readonly percent: number;
  readonly disk: () => SharedDisk;
  /** Ids of the accounts to which this does not apply. */
  readonly trusted: () => Promise<ReadonlySet<number>>;
}

const GIB = 2 ** 30;
/** At least this many accounts are needed to fill the share. */
const ACCOUNTS_TO_FILL = 4;
/** So much of its share an account has in any case, while there is any space. */
const SMALL = 1 / 8;
/** Every account has room for a machine, also on a small disk. */
const LEAST_BYTES = GIB;
/** The bytes of all are counted this often, ms, and only while the disk fills. */
const LOOK_MS = 5000;
const NOBODY: ReadonlySet<number> = new Set();

interface Shares {
  readonly allBytes: number;
  readonly eachBytes: number;
}

interface Look {
  readonly at: number;
  readonly trusted: ReadonlySet<number>;
  /** Bytes of accounts that are not trusted, with those admitted since. */
  readonly held: Map<number, number>;
}

export class DiskShares {
  readonly #deps: DiskSharesDeps;
  readonly #kinds: HeldBytes[] = [];
  #look: Look | undefined;
  #looking: Promise<Look> | undefined;

  constructor(deps: DiskSharesDeps) {
    this.#deps = deps;
  }

  /** Counts one more kind of thing. */
  count(kind: HeldBytes): void {
    this.#kinds.push(kind);
  }

  /** Accounts whose things may not grow for now: they hold more than their share. */
  async over(): Promise<ReadonlySet<number>> {
    const shares = this.#shares(0);
    if (shares === null) return NOBODY;
    const { held } = await this.#known();
    const allBytes = sumOf(held, shares);
    const most = [...held.values()].reduce((largest, bytes) => Math.max(largest, bytes), 0);
    const isOver = (bytes: number) =>
      bytes > shares.eachBytes || (allBytes > shares.allBytes && 2 * bytes > most);
    return new Set([...held].filter(([, bytes]) => isOver(bytes)).map(([accountId]) => accountId));
  }

  /** Admits `bytes` more. Throws `out_of_space` when the account would hold more than its share. */
  async assertMayGrow(accountId: number, bytes: number): Promise<void> {
    const held = await this.#assertRoom(accountId, bytes);
    held?.set(accountId, (held.get(accountId) ?? 0) + bytes);
  }

  /** The same for bytes that may come, and are admitted once they are there. */
  async assertRoom(accountId: number, bytes: number): Promise<void> {
    await this.#assertRoom(accountId, bytes);
  }

  async #assertRoom(accountId: number, bytes: number): Promise<Map<number, number> | undefined> {
    const shares = this.#shares(bytes);
    if (shares === null) return undefined;
    const { held, trusted } = await this.#known();
    if (trusted.has(accountId)) return undefined;
    const ownBytes = held.get(accountId) ?? 0;
    const wantedBytes = ownBytes + bytes;
    const isLarge = wantedBytes > shares.eachBytes * SMALL;
    const isFull = sumOf(held, shares) + bytes > shares.allBytes;
    if (wantedBytes > shares.eachBytes || (isLarge && isFull)) throw shareTaken(ownBytes, shares);
    return held;
  }

  /** null: enough of the disk is free for everybody. */
  #shares(moreBytes: number): Shares | null {
    const { percent, disk } = this.#deps;
    if (percent === 100) return null;
    const { totalBytes, freeBytes } = disk();
    if (freeBytes - moreBytes >= totalBytes * (1 - percent / 100)) return null;
    const allBytes = Math.floor((totalBytes * percent) / 100);
    return { allBytes, eachBytes: Math.max(Math.floor(allBytes / ACCOUNTS_TO_FILL), LEAST_BYTES) };
  }

  async #known(): Promise<Look> {
    const now = this.#deps.clock.monotonic();
    if (this.#look !== undefined && now - this.#look.at < LOOK_MS) return this.#look;
    this.#looking ??= this.#lookAgain(now).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookAgain(at: number): Promise<Look> {
    const trusted = await this.#deps.trusted();
    const held = new Map<number, number>();
    for (const kind of this.#kinds)
      for (const [accountId, bytes] of await kind())
        if (!trusted.has(accountId)) held.set(accountId, (held.get(accountId) ?? 0) + bytes);
    this.#look = { at, trusted, held };
    return this.#look;
  }
}

/** An account that had filled the disk before there were shares takes nobody else's. */
function sumOf(held: ReadonlyMap<number, number>, { eachBytes }: Shares): number {
  return [...held.values()].reduce((sum, bytes) => sum + Math.min(bytes, eachBytes), 0);
}

function shareTaken(ownBytes: number, { eachBytes }: Shares): AppError {
  const [own, each] = [ownBytes, eachBytes].map((bytes) => (bytes / GIB).toFixed(1));
  return new AppError(
    'out_of_space',
    `The disk of this cloud fills: your objects, databases and machines take ${own} of the ${each} GB that one ` +
      'account without granted credits may have then, and all such accounts share a part of it',
    {
      hint: 'Delete objects, old versions, databases, snapshots or machines, or ask an administrator to grant you credits',
    },
  );
}
