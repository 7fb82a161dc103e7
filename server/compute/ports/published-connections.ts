/**
 * Connections through published ports. All accounts share a limit, and the visitors of an account
 * its share: anybody may open connections and leave them idle.
 */
import type { Socket } from 'node:net';
import type { WriteBehind } from '../../metadata/change.ts';
import { SharedSlots } from '../../platform/shared-slots.ts';
import type { OpenFiles } from '../machines/machines.ts';

export interface PublishedConnectionsDeps {
  readonly descriptors: OpenFiles;
  /** Maximum connections of all accounts together. */
  readonly maxConnections: number;
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

/** Maximum concurrent connections per account. */
const MAX_CONNECTIONS = 512;
const PER_CONNECTION_FILES = 2;

interface Entry {
  readonly vmId: string;
  readonly socket: Socket;
  counted: number;
}

/** Slots of one account, by visitor. */
type Slots = SharedSlots<string>;

export class PublishedConnections {
  readonly #deps: PublishedConnectionsDeps;
  readonly #max: number;
  /** Slots of all accounts. */
  readonly #all: SharedSlots<number>;
  readonly #byAccount = new Map<number, Slots>();
  readonly #open = new Set<Entry>();

  constructor(deps: PublishedConnectionsDeps, max = MAX_CONNECTIONS) {
    this.#deps = deps;
    this.#max = max;
    this.#all = new SharedSlots(deps.maxConnections);
  }

  /** null: the port does not respond, or the visitor gets no slot. Never rejects. */
  async dial(visit: Visit, connect: () => Promise<Socket | null>): Promise<Socket | null> {
    const { vmId } = visit;
    let socket: Socket | null = null;
    let isGone = false;
    const giveBack = this.#take(visit, () => {
      isGone = true;
      socket?.resetAndDestroy();
    });
    if (giveBack === null) return null;
    try {
      this.#deps.descriptors.assertFree(PER_CONNECTION_FILES);
      const made = await connect();
      if (made === null || made.destroyed || isGone) {
        made?.destroy();
        giveBack();
        return null;
      }
      socket = made;
      const entry = { vmId, socket: made, counted: 0 };
      this.#open.add(entry);
      made.once('close', () => {
        this.#count(entry);
        this.#open.delete(entry);
        giveBack();
      });
      return made;
    } catch (error) {
      giveBack();
      this.#deps.onError(vmId, 'connecting to a published port failed', error);
      return null;
    }
  }

  /** Reports the bytes sent since the last call to billing. */
  countSent(): void {
    for (const entry of this.#open) this.#count(entry);
  }

  /** Takes a slot of the account and one of the total. */
  #take({ accountId, source }: Visit, onGone: () => void): (() => void) | null {
    const own: Slots = this.#byAccount.get(accountId) ?? new SharedSlots(this.#max);
    this.#byAccount.set(accountId, own);
    const backs: (() => void)[] = [];
    const giveBack = () => {
      for (const back of backs) back();
      if (own.size === 0 && this.#byAccount.get(accountId) === own) this.#byAccount.delete(accountId);
    };
    const giveWay = () => {
      giveBack();
      onGone();
    };
    const ofOwn = own.take(source, giveWay);
    if (ofOwn !== null) backs.push(ofOwn);
    const ofAll = ofOwn === null ? null : this.#all.take(accountId, giveWay);
    if (ofAll !== null) backs.push(ofAll);
    if (ofAll !== null) return giveBack;
    giveBack();
    return null;
  }

  #count(entry: Entry): void {
    const bytes = entry.socket.bytesRead - entry.counted;
    if (bytes === 0) return;
    entry.counted += bytes;
    this.#deps.sent.note(entry.vmId, bytes);
  }
}
