/** The WebSocket of updates, reconnected until it is closed by the caller. */

export interface ChangedThing {
  readonly kind: 'vm' | 'database' | 'balance' | 'operation' | 'recovery_point';
  readonly id: string;
}

export interface UpdateListener {
  /** Reload everything shown: the connection is new, or too much changed to list. */
  sync(): void;
  changed(things: readonly ChangedThing[]): void;
  /** The connection is gone, or could not be had. It is tried again. */
  lost(): void;
}

type Message =
  | { readonly type: 'sync' | 'alive' }
  | { readonly type: 'changed'; readonly things: readonly ChangedThing[] };

const RETRY_MS = 1000;
const RETRY_MAX_MS = 15_000;
/** Twice as long as the cloud is silent at most, and a little. */
const SILENCE_MS = 45_000;

interface Watch {
  /** Browsers send the session cookie instead. */
  readonly headers: Readonly<Record<string, string>>;
  readonly listener: UpdateListener;
}

/** `url`: a path of the page's origin, or a whole address. */
export function watchUpdates(url: string, { headers, listener }: Watch): () => void {
  const address = new URL(url, globalThis.location?.href).href.replace(/^http/, 'ws');
  let socket: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let isOver = false;
  const expect = (ms: number, then: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
  };
  const connect = () => {
    // Only programs have a key, and their WebSocket takes headers.
    const options = Object.keys(headers).length === 0 ? [] : [{ headers } as never];
    const own = new WebSocket(address, ...options);
    socket = own;
    const lost = () => {
      if (isOver || socket !== own) return;
      socket = undefined;
      own.close();
      expect(Math.min(RETRY_MS * 2 ** failures++, RETRY_MAX_MS), connect);
      listener.lost();
    };
    expect(SILENCE_MS, lost);
    own.onclose = lost;
    own.onmessage = ({ data }) => {
      if (isOver || socket !== own) return;
      failures = 0;
      expect(SILENCE_MS, lost);
      const message = JSON.parse(String(data)) as Message;
      if (message.type === 'sync') listener.sync();
      if (message.type === 'changed') listener.changed(message.things);
    };
  };
  // A browser that is back on the network need not wait, and its old connection is in doubt.
  const hurry = () => {
    const old = socket;
    connect();
    old?.close();
  };
  globalThis.addEventListener?.('online', hurry);
  connect();
  return () => {
    isOver = true;
    clearTimeout(timer);
    globalThis.removeEventListener?.('online', hurry);
    socket?.close();
  };
}
