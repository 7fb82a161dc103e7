/**
 * Sends frames over a WebSocket. Pending bytes are counted until they have left our memory, and
 * bounded if the client reads too slowly.
 */
import type { WebSocket } from 'ws';

const MAX_WAITING_BYTES = 2 ** 20;
/** Maximum pending bytes before writeFrame() asks its caller to wait. */
const WINDOW_BYTES = 256 * 1024;

/** Counts unsent bytes; call the result once they are sent. Throws `overloaded`. */
type Hold = (bytes: number) => () => void;

/** False: the client reads too slowly. */
export function sendFrame(webSocket: WebSocket, message: Uint8Array | string, hold: Hold): boolean {
  if (webSocket.readyState !== webSocket.OPEN) return true;
  const bytes = Buffer.byteLength(message);
  if (webSocket.bufferedAmount + bytes > MAX_WAITING_BYTES) return false;
  try {
    // Called with an error too, when the connection ends.
    webSocket.send(message, hold(bytes));
    return true;
  } catch {
    return false;
  }
}

export function writeFrame(webSocket: WebSocket, bytes: Uint8Array, hold: Hold): Promise<void> | undefined {
  if (webSocket.readyState !== webSocket.OPEN) return undefined;
  const sent = hold(bytes.length);
  if (webSocket.bufferedAmount + bytes.length <= WINDOW_BYTES) {
    webSocket.send(bytes, sent);
    return undefined;
  }
  return new Promise((resolve) =>
    webSocket.send(bytes, () => {
      sent();
      resolve();
    }),
  );
}
