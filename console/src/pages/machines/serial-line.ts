/** The WebSocket of a machine's serial console: opened with a ticket, and reopened after it was lost. */
import { CloudError } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { isSignedOut, session, sessionEnded } from '../../queries.ts';

/** `refused`: retrying is pointless. */
export type LineState = 'connecting' | 'connected' | 'lost' | 'refused' | 'ended';

interface LineEvents {
  /** Recent output of the machine follows each connection. */
  readonly onOpen: () => void;
  /** `isOld`: replayed output; terminal queries in it must not be answered again. */
  readonly onBytes: (bytes: Uint8Array, isOld: boolean) => void;
  readonly onState: (state: LineState) => void;
}

const STOPPED = 1000;
const FIRST_WAIT_MS = 500;
const WAIT_MAX_MS = 15_000;
/** The cloud accepts frames of up to 64 KiB. */
const FRAME_BYTES = 32 * 1024;

export class SerialLine {
  readonly #vmId: string;
  readonly #events: LineEvents;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waitMs = FIRST_WAIT_MS;
  #isClosed = false;
  /** A machine that is starting has no console yet, so no connection was lost. */
  #wasOpen = false;
  #stopWaiting = () => {};

  constructor(vmId: string, events: LineEvents) {
    this.#vmId = vmId;
    this.#events = events;
    void this.#open();
  }

  /** Dropped while disconnected. */
  send(text: string): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const bytes = new TextEncoder().encode(text);
    for (let from = 0; from < bytes.length; from += FRAME_BYTES)
      this.#socket.send(bytes.subarray(from, from + FRAME_BYTES));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#stopWaiting();
    this.#socket?.close();
  }

  async #open(): Promise<void> {
    this.#events.onState('connecting');
    try {
      const { ticket } = await cloud.createConsoleTicket(this.#vmId);
      if (this.#isClosed) return;
      const url = new URL(cloud.urlOf('openConsole', [this.#vmId], { ticket }), location.href);
      url.protocol = url.protocol.replace('http', 'ws');
      this.#listen(new WebSocket(url));
    } catch (error) {
      const isWorthAnother = error instanceof CloudError && (error.status === 0 || error.status >= 500);
      if (isWorthAnother) this.#again();
      else if (isSignedOut(error)) this.#afterSignIn();
      else this.#events.onState('refused');
    }
  }

  #listen(socket: WebSocket): void {
    this.#socket = socket;
    socket.binaryType = 'arraybuffer';
    // The first message replays recent output, if any.
    let isOld = true;
    socket.onopen = () => {
      this.#waitMs = FIRST_WAIT_MS;
      this.#wasOpen = true;
      this.#events.onOpen();
      this.#events.onState('connected');
    };
    socket.onmessage = ({ data }) => {
      this.#events.onBytes(new Uint8Array(data as ArrayBuffer), isOld);
      isOld = false;
    };
    socket.onclose = ({ code }) => {
      if (this.#isClosed) return;
      if (code === STOPPED) this.#events.onState('ended');
      else this.#again();
    };
  }

  #afterSignIn(): void {
    if (this.#isClosed) return;
    this.#events.onState('lost');
    sessionEnded();
    this.#stopWaiting = session.subscribe(() => {
      if (session.get() !== 'alive') return;
      this.#stopWaiting();
      void this.#open();
    });
  }

  #again(): void {
    if (this.#isClosed) return;
    this.#events.onState(this.#wasOpen ? 'lost' : 'connecting');
    this.#timer = setTimeout(() => this.#open(), this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, WAIT_MAX_MS);
  }
}
