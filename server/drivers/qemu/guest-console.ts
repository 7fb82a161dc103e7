/** The serial console of a running guest, and what it wrote. */
import * as fs from 'node:fs';
import type { Socket } from 'node:net';
import { dirname } from 'node:path';
import type { GuestConsole } from '../../compute/hypervisor.ts';

/** Beyond this a log is cut to its newest part, while the guest runs: a guest can write without end. */
const LOG_LIMIT_BYTES = 8 * 1024 * 1024;
const LOG_KEPT_BYTES = 1024 * 1024;

/** Listens first and lets the bytes flow then: none is lost in between. */
export class SocketConsole implements GuestConsole {
  readonly #socket: Socket;
  #onClose: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('close', () => {
      const listener = this.#onClose;
      this.#onClose = () => {};
      listener();
    });
  }

  write(bytes: Uint8Array): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#socket.write(bytes, (error) => (error ? reject(error) : resolve()));
    return promise;
  }

  onData(listener: (bytes: Uint8Array) => void): void {
    this.#socket.on('data', listener);
  }

  onClose(listener: () => void): void {
    if (this.#socket.closed) listener();
    else this.#onClose = listener;
  }

  close(): void {
    this.#onClose = () => {};
    this.#socket.destroy();
  }

  /** Another caller takes the console. */
  supersede(): void {
    this.#socket.destroy();
  }
}

/**
 * Cuts a log that grew too long to its newest part. QEMU appends, so it goes on behind what is left. What it
 * writes in the very moment of the cut may be lost. The folder is the guest's: what it put in the place of
 * its log (a file of ours that was lent to it, by another name) is left alone.
 */
export function trimLog(path: string): void {
  let fd: number;
  try {
    if (fs.lstatSync(path).size <= LOG_LIMIT_BYTES) return;
    const flags = fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_NOFOLLOW;
    fd = fs.openSync(path, flags | fs.constants.O_NONBLOCK);
  } catch {
    return;
  }
  try {
    const { size, nlink, uid } = fs.fstatSync(fd);
    if (nlink !== 1 || uid !== fs.statSync(dirname(path)).uid) return;
    const kept = Buffer.alloc(LOG_KEPT_BYTES);
    const got = fs.readSync(fd, kept, 0, kept.length, size - kept.length);
    fs.ftruncateSync(fd, 0);
    fs.writeSync(fd, kept, 0, got);
  } finally {
    fs.closeSync(fd);
  }
}
