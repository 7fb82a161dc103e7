/** The serial console of a running guest, and its log. */
import * as fs from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { GuestConsole } from '../../../compute/hypervisor.ts';
import { connectIn, openOwn, tailOf } from '../../host-process/foreign-files.ts';
import { FILES } from '../arguments.ts';

/**
 * Maximum log size; above it a log is cut to its newest part while the guest runs: guests write without
 * limit.
 */
const LOG_LIMIT_BYTES = 8 * 1024 * 1024;
const LOG_KEPT_BYTES = 1024 * 1024;

/** Listens first, then lets bytes flow, so that none is lost. */
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

  /** null: the guest in that folder does not listen. */
  static async open(folder: string): Promise<SocketConsole | null> {
    const socket = await connectIn(folder, FILES.console).catch(() => null);
    return socket === null ? null : new SocketConsole(socket);
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

  /** Another caller takes over the console. */
  supersede(): void {
    this.#socket.destroy();
  }
}

/** The end of the console log of the guest in that folder; empty without a log. */
export function readLog(folder: string, maxBytes: number): Uint8Array {
  let fd: number;
  try {
    fd = openOwn(folder, FILES.consoleLog, fs.constants.O_RDONLY);
  } catch {
    return new Uint8Array();
  }
  try {
    return tailOf(fd, maxBytes);
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Truncates a log that grew too long to its newest part. QEMU appends, so it continues after the
 * rest. Bytes written during the truncation may be lost. A file that the guest put in place of its
 * log (a file of ours lent to it, under another name) is left alone.
 */
export function trimLog(folder: string): void {
  let fd: number;
  try {
    if (consoleBytes(folder) <= LOG_LIMIT_BYTES) return;
    fd = openOwn(folder, FILES.consoleLog, fs.constants.O_RDWR | fs.constants.O_APPEND);
  } catch {
    return;
  }
  try {
    const kept = tailOf(fd, LOG_KEPT_BYTES);
    fs.ftruncateSync(fd, 0);
    fs.writeSync(fd, kept);
  } finally {
    fs.closeSync(fd);
  }
}

/** Bytes in the console's log of the guest in that folder. */
export function consoleBytes(folder: string): number {
  return fs.lstatSync(join(folder, FILES.consoleLog), { throwIfNoEntry: false })?.size ?? 0;
}
