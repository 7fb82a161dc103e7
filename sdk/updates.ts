/** The WebSocket of updates, reconnected until it is closed by the caller. */

export interface ChangedThing {
  readonly kind: 'vm' | 'database' | 'balance' | 'operation' | 'recovery_point';
  readonly id: string;
}

export interface UpdateListener {
  /** Reload everything shown: the connection is new, or too much changed to list. */
  sync(): void;
  changed(things: readonly ChangedThing[]): void;
  /** The connection was lost, or failed. It is retried. */
  lost(): void;
}

type Message =
  | { readonly type: 'sync' | 'alive' }
  | { readonly type: 'changed'; readonly things: readonly ChangedThing[] };

const RETRY_MS = 1000;
const RETRY_MAX_MS = 15_000;
/** Twice the cloud's longest silence, plus a margin. */
const SILENCE_MS = 45_000;

interface Watch {
  /** A path on the page's origin, or a full URL; called for each connection. */
  readonly address: () => Promise<string>;
  /** Browsers send none. */
  readonly headers: Readonly<Record<string, string>>;
  readonly listener: UpdateListener;
}

export function watchUpdates({ address, headers, listener }: Watch): () => void {
  let attempts = 0;
  let socket: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let isOver = false;
  const expect = (ms: number, then: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
  };
  const tryAgain = () => {
    expect(Math.min(RETRY_MS * 2 ** failures++, RETRY_MAX_MS), () => void connect());
    listener.lost();
  };
  const connect = async () => {
    const attempt = ++attempts;
    let url: string;
    try {
      url = new URL(await address(), globalThis.location?.href).href.replace(/^http/, 'ws');
    } catch {
      if (!isOver && attempt === attempts) tryAgain();
      return;
    }
    if (isOver || attempt !== attempts) return;
    const options = Object.keys(headers).length === 0 ? [] : [{ headers } as never];
    const own = new WebSocket(url, ...options);
    socket = own;
    const lost = () => {
      if (isOver || socket !== own) return;
      socket = undefined;
      own.close();
      tryAgain();
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
  // When a browser is online again it does not need to wait, and its old connection may be dead.
  const hurry = () => {
    const old = socket;
    socket = undefined;
    void connect();
    old?.close();
  };
  globalThis.addEventListener?.('online', hurry);
  void connect();
  return () => {
    isOver = true;
    clearTimeout(timer);
    globalThis.removeEventListener?.('online', hurry);
    socket?.close();
  };
}
