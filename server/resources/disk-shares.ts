/**
 * While the host's disk is filling up, accounts without granted credits are limited to a share of it with
 * everything that they store: objects, databases, machines. Quotas count what may be written, this limit what
 * is written. So the account that grows is refused first, and others still have room.
 *
 * Objects count by their sizes, although copies of one share its bytes: counting each content once would
 * require reading all versions of all accounts. Objects limit only further objects, so that copies never
 * pause machines. An account may thus use its share for objects, and again for databases and machines.
 */
import type { Awaitable } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';

/** The disk with the data directory. */
export interface SharedDisk {
  readonly totalBytes: number;
  /** Free bytes, less those that are admitted but not written yet. */
  readonly freeBytes: number;
}

/** Bytes on the disk of one kind, by account id. */
export type HeldBytes = () => Awaitable<ReadonlyMap<number, number>>;

export interface DiskSharesDeps {
  readonly clock: Clock;
  /** Percentage of the disk for all these accounts together. */
  readonly percent: number;
  readonly disk: () => SharedDisk;
  /** Ids of the accounts without this limit. */
  readonly trusted: () => Promise<ReadonlySet<number>>;
  /** A kind could not be counted, and has its last figures. */
  readonly onError: (error: unknown) => void;
}

interface Kind {
  readonly read: HeldBytes;
  readonly isObjects: boolean;
  last: ReadonlyMap<number, number>;
}

const GIB = 2 ** 30;
/** At least this many accounts are needed to fill the share. */
const ACCOUNTS_TO_FILL = 4;
/** Part of its share that an account may always use, while there is any space. */
const SMALL = 1 / 8;
/** Every account has room for a machine, also on a small disk. */
const LEAST_BYTES = GIB;
/** Interval of counting the bytes of all accounts, ms; only while the disk is filling up. */
const LOOK_MS = 5000;
const NOBODY: ReadonlySet<number> = new Set();

interface Shares {
  readonly allBytes: number;
  readonly eachBytes: number;
}

interface Look {
  readonly at: number;
  readonly trusted: ReadonlySet<number>;
  /** Bytes of untrusted accounts, including those admitted since the last count. */
  readonly held: Map<number, number>;
  /** The same without objects. */
  readonly others: Map<number, number>;
}

export class DiskShares {
  readonly #deps: DiskSharesDeps;
  readonly #kinds: Kind[] = [];
  #look: Look | undefined;
  #looking: Promise<Look> | undefined;

  constructor(deps: DiskSharesDeps) {
    this.#deps = deps;
  }

  /** Counts another kind of resource. */
  count(read: HeldBytes, { isObjects = false } = {}): void {
    this.#kinds.push({ read, isObjects, last: new Map() });
  }

  /** Accounts whose databases and machines may not grow for now: these use more than their share. */
  async over(): Promise<ReadonlySet<number>> {
    const shares = this.#shares(0);
    if (shares === null) return NOBODY;
    const { others } = await this.#known();
    const allBytes = sumOf(others, shares);
    const most = [...others.values()].reduce((largest, bytes) => Math.max(largest, bytes), 0);
    const isOver = (bytes: number) =>
      bytes > shares.eachBytes || (allBytes > shares.allBytes && 2 * bytes > most);
    return new Set([...others].filter(([, bytes]) => isOver(bytes)).map(([accountId]) => accountId));
  }

  /** Admits `bytes` more of a machine. Throws `out_of_space` beyond the account's share without objects. */
  async assertMayGrow(accountId: number, bytes: number): Promise<void> {
    const look = await this.#lookFor(bytes);
    if (look === undefined || look.trusted.has(accountId)) return;
    assertShare(look.others, { accountId, bytes, shares: look.shares, what: 'databases and machines' });
    for (const held of [look.others, look.held]) add(held, accountId, bytes);
  }

  /** Throws `out_of_space` when the account would hold more than its share with more objects. */
  async assertRoom(accountId: number, bytes: number): Promise<void> {
    const look = await this.#lookFor(bytes);
    if (look === undefined || look.trusted.has(accountId)) return;
    const what = 'objects, databases and machines';
    assertShare(look.held, { accountId, bytes, shares: look.shares, what });
  }

  /** Counts objects that were stored since the last look. */
  stored(accountId: number, bytes: number): void {
    const look = this.#look;
    if (look !== undefined && !look.trusted.has(accountId)) add(look.held, accountId, bytes);
  }

  async #lookFor(moreBytes: number): Promise<(Look & { readonly shares: Shares }) | undefined> {
    const shares = this.#shares(moreBytes);
    return shares === null ? undefined : { ...(await this.#known()), shares };
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
    const [held, others] = [new Map<number, number>(), new Map<number, number>()];
    for (const kind of this.#kinds) {
      await this.#count(kind);
      for (const [accountId, bytes] of kind.last) {
        if (trusted.has(accountId)) continue;
        add(held, accountId, bytes);
        if (!kind.isObjects) add(others, accountId, bytes);
      }
    }
    this.#look = { at, trusted, held, others };
    return this.#look;
  }

  /** If counting one kind fails, the limits of the others still apply. */
  async #count(kind: Kind): Promise<void> {
    try {
      kind.last = await kind.read();
    } catch (error) {
      this.#deps.onError(error);
    }
  }
}

function add(held: Map<number, number>, accountId: number, bytes: number): void {
  held.set(accountId, (held.get(accountId) ?? 0) + bytes);
}

interface Wish {
  readonly accountId: number;
  readonly bytes: number;
  readonly shares: Shares;
  readonly what: string;
}

function assertShare(held: ReadonlyMap<number, number>, { accountId, bytes, shares, what }: Wish): void {
  const ownBytes = held.get(accountId) ?? 0;
  const wantedBytes = ownBytes + bytes;
  const isLarge = wantedBytes > shares.eachBytes * SMALL;
  const isFull = sumOf(held, shares) + bytes > shares.allBytes;
  if (wantedBytes > shares.eachBytes || (isLarge && isFull)) throw shareTaken(what, ownBytes, shares);
}

/** An account that had filled the disk before shares existed does not reduce the shares of others. */
function sumOf(held: ReadonlyMap<number, number>, { eachBytes }: Shares): number {
  return [...held.values()].reduce((sum, bytes) => sum + Math.min(bytes, eachBytes), 0);
}

function shareTaken(what: string, ownBytes: number, { eachBytes }: Shares): AppError {
  const [own, each] = [ownBytes, eachBytes].map((bytes) => (bytes / GIB).toFixed(1));
  return new AppError(
    'out_of_space',
    `The disk of this cloud is filling up: your ${what} use ${own} of the ${each} GB that ` +
      'an account without granted credits may use. All accounts without granted credits share a part of the disk',
    {
      hint: 'Delete objects, old versions, databases, snapshots or machines, or ask an administrator to grant you credits',
    },
  );
}
