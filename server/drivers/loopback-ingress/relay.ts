/** Connects two sockets. */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

export interface RelayCounts {
  /** Bytes read from the client and handed to the guest's side. */
  readonly onIn: (bytes: number) => void;
  readonly onOut: (bytes: number) => void;
}

/**
 * Joins both until each has ended. The end of one side is passed on while the other direction stays open, a
 * reset as a reset; a side that does not read blocks only the other one.
 */
export function relay(client: Socket, guest: Socket, counts: RelayCounts): void {
  pump(client, guest, counts.onIn);
  pump(guest, client, counts.onOut);
}

function pump(from: Socket, to: Socket, onBytes: (bytes: number) => void): void {
  from.on('data', (bytes: Buffer) => {
    onBytes(bytes.length);
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => from.resume());
  if (from.readableEnded) to.end();
  else from.on('end', () => to.end());
  from.on('close', () => {
    if (!to.readableEnded || !to.writableEnded) reset(to);
  });
  if (to.writableNeedDrain) from.pause();
  else from.resume();
}

/** Resets the connection, so that a cut is not mistaken for a proper end. */
export function reset(socket: Socket): void {
  if (socket.destroyed) return;
  // libuv refuses a reset while an end is under way (uv_tcp_close_reset), and Node then never closes the
  // socket: its thread could not end any more.
  const isEnding = socket.writableEnded && !socket.writableFinished;
  // Node resets plain TCP only.
  if (socket.connecting || isEnding || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}
