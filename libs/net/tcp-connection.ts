/**
 * The service's end of one TCP connection of a guest (RFC 9293). The connection to QEMU neither
 * loses nor reorders frames, so data after a gap is dropped and requested again, and there is no
 * congestion control; a guest that was halted or restarted is still detected by retransmission and
 * probes.
 */
import type { Duplex } from 'node:stream';
import { GatheredWrites } from './gathered-writes.ts';
import { FLAG, type Segment, synOptionsIn } from './packets.ts';

export interface TcpDeps {
  /** Sends a segment from this end. */
  readonly emit: (segment: Omit<Segment, 'from' | 'fromPort' | 'to' | 'toPort'>) => void;
  /** The wire is full; pump() is called when it accepts data again. */
  readonly isWireFull: () => boolean;
  /** Bytes that may be kept in each direction. */
  readonly budget: () => number;
  /** Requests flush() after the frames that arrived together. */
  readonly soon: (connection: TcpConnection) => void;
  /** Monotonic, ms. */
  readonly now: () => number;
  readonly onClosed: () => void;
}

/** The MTU of the private device without the headers. */
const MSS = 8960;
/** Our windows are in units of 128 bytes. */
const SCALE = 7;
const FIRST_RTO_MS = 1000;
const MAX_RTO_MS = 30_000;
/** Keep-alive interval of an idle guest, which is dropped if it does not answer. */
const PROBE_MS = 30_000;
const DEAD_MS = 150_000;
const NOTHING = Buffer.alloc(0);

export class TcpConnection {
  readonly #deps: TcpDeps;
  readonly #service: Duplex;
  readonly #writes: GatheredWrites;
  readonly #mss: number;
  readonly #peerScale: number | null;
  /** First byte that the guest has not acknowledged, next to be sent, and the furthest that was sent. */
  #una: number;
  #next: number;
  #furthest: number;
  #peerWindow: number;
  /** Next byte expected from the guest, and the end of its advertised window. */
  #expected: number;
  #allowed: number;
  /** Bytes from #una on. */
  readonly #queue: Buffer[] = [];
  #queued = 0;
  #isOpen = false;
  #guestEnded = false;
  #serviceEnded = false;
  /** Set after the service has ended. */
  #endAt: number | null = null;
  #isEndKnown = false;
  #owesAck = false;
  #isClosed = false;
  #heardAt: number;
  #probedAt: number;
  #dueAt = Number.POSITIVE_INFINITY;
  #rto = FIRST_RTO_MS;

  /** `service`: connected. Answers the guest's SYN. */
  constructor(syn: Segment, service: Duplex, deps: TcpDeps) {
    this.#deps = deps;
    this.#service = service;
    this.#writes = new GatheredWrites(service, () => this.#openWindow());
    const { mss, scale } = synOptionsIn(syn.options);
    this.#mss = Math.max(64, Math.min(mss, MSS));
    this.#peerScale = scale;
    this.#peerWindow = syn.window;
    this.#expected = (syn.seq + 1) >>> 0;
    this.#allowed = this.#expected;
    this.#heardAt = deps.now();
    this.#probedAt = this.#heardAt;
    // A clock of 4 µs (RFC 9293 §3.4.1): the guest's next connection from this port is not confused
    // with this one.
    this.#una = Math.floor(this.#heardAt * 250) >>> 0;
    this.#next = this.#una;
    this.#furthest = this.#una;
    service.on('error', () => {});
    service.on('data', (bytes: Buffer) => this.#take(bytes));
    // The service may have ended before the connection existed.
    this.#serviceEnded = service.readableEnded;
    service.once('end', () => {
      this.#serviceEnded = true;
      this.pump();
    });
    service.once('close', () => {
      // Bytes sent before its end are still delivered; the guest's are dropped.
      if (!this.#serviceEnded) this.abort();
    });
    this.#sendSyn();
  }

  receive(segment: Segment): void {
    if (this.#isClosed) return;
    const { flags, seq, ack } = segment;
    this.#heardAt = this.#deps.now();
    if ((flags & FLAG.rst) !== 0) {
      // RFC 5961 §3: only the exact number ends it.
      if (seq === this.#expected) this.#close(true);
      else if (after(this.#allowed, seq) > 0) this.#owe();
      return;
    }
    if ((flags & FLAG.syn) !== 0) {
      // Our segment was lost, or the guest no longer has this connection and will reset it when it
      // receives our answer.
      if (!this.#isOpen) this.#sendSyn();
      else this.#sendAck();
      return;
    }
    if ((flags & FLAG.ack) === 0) return;
    const isOfWhatWasSent = after(ack, this.#furthest) <= 0;
    if (isOfWhatWasSent) this.#acknowledge(segment);
    else this.#owesAck = true;
    if (isOfWhatWasSent && this.#isOpen) this.#accept(segment);
    this.#deps.soon(this);
  }

  /** Sends pending acknowledgements and data. */
  flush(): void {
    if (this.#isClosed) return;
    this.pump();
    if (this.#owesAck) this.#sendAck();
    this.#closeWhenDone();
  }

  /** Sends data of the service within the guest's window. */
  pump(): void {
    if (!this.#isOpen || this.#isClosed) return;
    while (!this.#deps.isWireFull()) {
      const inFlight = after(this.#next, this.#una);
      const left = this.#queued - inFlight;
      const size = Math.min(left, this.#peerWindow - inFlight, this.#mss);
      if (size <= 0 || (size < this.#mss && size < left && inFlight > 0)) break;
      this.#send(FLAG.ack | (size === left ? FLAG.psh : 0), this.#slice(inFlight, size));
    }
    const isAllSent = after(this.#next, this.#una) === this.#queued;
    if (this.#serviceEnded && isAllSent && !this.#isEndKnown) {
      this.#send(FLAG.ack | FLAG.fin, NOTHING);
      this.#endAt = this.#next;
    }
    if (this.#dueAt === Number.POSITIVE_INFINITY && (this.#queued > 0 || this.#next !== this.#una))
      this.#dueAt = this.#deps.now() + this.#rto;
  }

  /** Call several times a second. */
  tick(): void {
    const now = this.#deps.now();
    if (now - this.#heardAt > DEAD_MS) this.abort();
    if (this.#isClosed) return;
    if (now - Math.max(this.#heardAt, this.#probedAt) > PROBE_MS) {
      this.#probedAt = now;
      this.#emit(FLAG.ack, (this.#next - 1) >>> 0, NOTHING);
    }
    if (now < this.#dueAt) return;
    this.#rto = Math.min(this.#rto * 2, MAX_RTO_MS);
    this.#dueAt = now + this.#rto;
    if (!this.#isOpen) {
      this.#sendSyn();
      return;
    }
    this.#next = this.#una;
    // A guest with a closed window may have opened it without our knowing.
    if (this.#queued > 0 && this.#peerWindow === 0) this.#send(FLAG.ack, this.#slice(0, 1));
    this.pump();
  }

  /** Aborts the connection on both sides. */
  abort(): void {
    if (this.#isClosed) return;
    this.#emit(FLAG.rst | FLAG.ack, this.#next, NOTHING);
    this.#close(true);
  }

  #take(bytes: Buffer): void {
    this.#queue.push(bytes);
    this.#queued += bytes.length;
    if (this.#queued >= this.#deps.budget()) this.#service.pause();
    this.pump();
  }

  #acknowledge({ ack, window }: Segment): void {
    const acked = after(ack, this.#una);
    if (acked < 0) return;
    this.#peerWindow = window << (this.#peerScale === null ? 0 : this.#peerScale);
    if (acked === 0) return;
    const ofSyn = this.#isOpen ? 0 : 1;
    this.#isOpen = true;
    this.#drop(Math.min(acked - ofSyn, this.#queued));
    this.#una = ack;
    this.#isEndKnown = ack === this.#endAt;
    if (after(this.#next, ack) < 0) this.#next = ack;
    this.#rto = FIRST_RTO_MS;
    this.#dueAt = Number.POSITIVE_INFINITY;
    if (this.#service.isPaused() && this.#queued < this.#deps.budget() / 2) this.#service.resume();
  }

  #accept({ seq, flags, payload }: Segment): void {
    const known = after(this.#expected, seq);
    const isEnd = (flags & FLAG.fin) !== 0;
    if (payload.length === 0 && !isEnd) {
      // A probe by the guest, before the window.
      if (known !== 0) this.#owesAck = true;
      return;
    }
    this.#owesAck = true;
    if (known < 0 || this.#guestEnded) return;
    const fresh = payload.subarray(known);
    const taken = fresh.subarray(0, Math.max(0, after(this.#allowed, this.#expected)));
    this.#expected = (this.#expected + taken.length) >>> 0;
    if (taken.length > 0 && !this.#service.destroyed) this.#writes.write(taken);
    if (!isEnd || taken.length < fresh.length || known > payload.length) return;
    this.#expected = (this.#expected + 1) >>> 0;
    this.#guestEnded = true;
    this.#writes.end();
  }

  /** Announces a larger window to a guest whose window was nearly used up. */
  #openWindow(): void {
    const budget = this.#deps.budget();
    const isNarrow = after(this.#allowed, this.#expected) < budget / 4;
    if (isNarrow && this.#writes.length < budget / 2) this.#owe();
  }

  #closeWhenDone(): void {
    if (this.#guestEnded && this.#isEndKnown) this.#close(false);
  }

  #close(isReset: boolean): void {
    this.#isClosed = true;
    this.#queue.length = 0;
    if (isReset) this.#service.destroy();
    this.#deps.onClosed();
  }

  #owe(): void {
    this.#owesAck = true;
    if (!this.#isClosed) this.#deps.soon(this);
  }

  #sendAck(): void {
    this.#emit(FLAG.ack, this.#next, NOTHING);
  }

  #sendSyn(): void {
    const scale = this.#peerScale === null ? [] : [3, 3, SCALE, 1];
    this.#next = (this.#una + 1) >>> 0;
    this.#furthest = this.#next;
    if (this.#dueAt === Number.POSITIVE_INFINITY) this.#dueAt = this.#deps.now() + this.#rto;
    const options = Uint8Array.from([2, 4, MSS >> 8, MSS & 255, ...scale]);
    // The window of a SYN is not scaled.
    const window = Math.min(this.#deps.budget(), 0xffff);
    this.#allowed = (this.#expected + window) >>> 0;
    const flags = FLAG.syn | FLAG.ack;
    this.#deps.emit({ seq: this.#una, ack: this.#expected, flags, window, options, payload: NOTHING });
  }

  /** Sends the next bytes. */
  #send(flags: number, payload: Buffer): void {
    const seq = this.#next;
    this.#next = (seq + payload.length + ((flags & FLAG.fin) === 0 ? 0 : 1)) >>> 0;
    if (after(this.#next, this.#furthest) > 0) this.#furthest = this.#next;
    this.#emit(flags, seq, payload);
  }

  #emit(flags: number, seq: number, payload: Buffer): void {
    this.#owesAck = false;
    const scale = this.#peerScale === null ? 0 : SCALE;
    const room = Math.max(0, this.#deps.budget() - this.#writes.length);
    // An advertised window never shrinks.
    const least = Math.max(0, after(this.#allowed, this.#expected));
    const window = Math.min(Math.ceil(Math.max(room, least) / 2 ** scale), 0xffff);
    this.#allowed = (this.#expected + Math.max(least, window * 2 ** scale)) >>> 0;
    this.#deps.emit({ seq, ack: this.#expected, flags, window, options: NOTHING, payload });
  }

  /** Bytes of the queue. */
  #slice(from: number, count: number): Buffer {
    const parts: Buffer[] = [];
    let [skip, left] = [from, count];
    for (const bytes of this.#queue) {
      if (skip < bytes.length && left > 0) {
        const part = bytes.subarray(skip, skip + left);
        parts.push(part);
        left -= part.length;
      }
      skip = Math.max(0, skip - bytes.length);
      if (left === 0) break;
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  #drop(count: number): void {
    this.#queued -= count;
    for (let left = count; left > 0; ) {
      const first = this.#queue[0] as Buffer;
      if (first.length > left) this.#queue[0] = first.subarray(left);
      else this.#queue.shift();
      left -= first.length;
    }
  }
}

/** Distance from `b` to `a` in sequence numbers; negative: before. */
function after(a: number, b: number): number {
  return (a - b) | 0;
}
