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
  /** A path of the page's origin, or a whole address; asked for each connection. */
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
  // A browser that is back on the network need not wait, and its old connection is in doubt.
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
