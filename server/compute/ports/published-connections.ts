/**
 * Connections through published ports. An account has a number of them, which its visitors share: anybody
 * may open some and then say nothing, so with all in use a visitor with few takes the place of one with many.
 */
import type { Socket } from 'node:net';
import type { WriteBehind } from '../../metadata/change.ts';
import type { OpenFiles } from '../machines/machines.ts';

export interface PublishedConnectionsDeps {
  readonly descriptors: OpenFiles;
  /** Bytes that machines sent to others, for billing. */
  readonly sent: Pick<WriteBehind<string, number>, 'note'>;
  readonly onError: (vmId: string, what: string, error: unknown) => void;
}

/** A visitor and a machine. */
export interface Visit {
  readonly accountId: number;
  readonly vmId: string;
  /** The visitor, see sourceOf(). */
  readonly source: string;
}

/** At once, per account. */
const MAX_CONNECTIONS = 512;
const PER_CONNECTION_FILES = 2;

interface Entry extends Visit {
  /** null: it is being made. */
  socket: Socket | null;
  /** Its place was given to another visitor. */
  isGone: boolean;
  counted: number;
}

export class PublishedConnections {
  readonly #deps: PublishedConnectionsDeps;
  readonly #max: number;
  /** By account; the oldest first. */
  readonly #open = new Map<number, Set<Entry>>();

  constructor(deps: PublishedConnectionsDeps, max = MAX_CONNECTIONS) {
    this.#deps = deps;
    this.#max = max;
  }

  /** null: nothing answers, or the account has no place for this visitor. Never rejects. */
  async dial(visit: Visit, connect: () => Promise<Socket | null>): Promise<Socket | null> {
    const { accountId, vmId, source } = visit;
    const all = this.#open.get(accountId) ?? new Set();
    if (all.size >= this.#max && !makeRoom(all, source)) return null;
    const entry: Entry = { ...visit, socket: null, isGone: false, counted: 0 };
    all.add(entry);
    this.#open.set(accountId, all);
    try {
      this.#deps.descriptors.assertFree(PER_CONNECTION_FILES);
      const socket = await connect();
      if (socket === null || socket.destroyed || entry.isGone) {
        socket?.destroy();
        this.#leave(entry);
        return null;
      }
      entry.socket = socket;
      socket.once('close', () => {
        this.#count(entry);
        this.#leave(entry);
      });
      return socket;
    } catch (error) {
      this.#leave(entry);
      this.#deps.onError(vmId, 'connecting to a published port failed', error);
      return null;
    }
  }

  /** Hands the bytes sent since the last call to billing. */
  countSent(): void {
    for (const all of this.#open.values()) for (const entry of all) this.#count(entry);
  }

  #leave(entry: Entry): void {
    const all = this.#open.get(entry.accountId);
    all?.delete(entry);
    if (all?.size === 0) this.#open.delete(entry.accountId);
  }

  #count(entry: Entry): void {
    const bytes = (entry.socket?.bytesRead ?? 0) - entry.counted;
    if (bytes === 0) return;
    entry.counted += bytes;
    this.#deps.sent.note(entry.vmId, bytes);
  }
}

/** False: nobody has clearly more of them than this visitor. */
function makeRoom(all: Set<Entry>, source: string): boolean {
  const counts = new Map<string, number>();
  for (const entry of all) counts.set(entry.source, (counts.get(entry.source) ?? 0) + 1);
  const most = Math.max(...counts.values());
  if (most <= (counts.get(source) ?? 0) + 1) return false;
  for (const entry of all) {
    if (counts.get(entry.source) !== most) continue;
    entry.isGone = true;
    all.delete(entry);
    entry.socket?.resetAndDestroy();
    return true;
  }
  return false;
}
