/**
 * One end of a guest's connection: splits bytes into frames, and queues frames for it while there
 * is room.
 */
import { connect, type Socket } from 'node:net';
import { LENGTH_BYTES } from './packets.ts';

export interface Member {
  readonly vmId: string;
  readonly accountId: number;
  readonly hostname: string;
  /** `56:xx:xx:xx:xx:xx`. */
  readonly mac: string;
  /** IPv4 text. */
  readonly address: string;
}

export interface SwitchPortDeps {
  /** A frame, with its length before it. */
  readonly enter: (port: SwitchPort, frame: Buffer) => void;
  /** Called after all frames that arrived together were processed. */
  readonly settle: () => void;
  /** Called when the wire accepts data again. */
  readonly onRoom: (port: SwitchPort) => void;
  readonly onClosed: (port: SwitchPort) => void;
}

const CONNECT_MS = 5000;
/** A guest whose QEMU announces a longer frame is broken; the device has an MTU of 9000. */
const MAX_FRAME_BYTES = 65_550;
/** Frames from neighbours above this are dropped, as a switch does. */
const FULL_BYTES = 512 * 1024;
/** Services pause above this many pending bytes. */
const BUSY_BYTES = 256 * 1024;

export class SwitchPort {
  readonly member: Member;
  readonly ip: number;
  readonly mac: Buffer;
  readonly #deps: SwitchPortDeps;
  readonly #socket: Socket;
  #rest: Buffer | null = null;
  #isCorked = false;
  #isBehind = false;

  /** `path`: see Hypervisor.privateSocket(). */
  constructor(member: Member, path: string, deps: SwitchPortDeps) {
    this.member = member;
    this.ip = ipNumber(member.address);
    this.mac = Buffer.from(member.mac.replaceAll(':', ''), 'hex');
    this.#deps = deps;
    this.#socket = connect(path);
    this.#socket.on('error', () => {});
    this.#socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    this.#socket.on('drain', () => deps.onRoom(this));
    this.#socket.on('close', () => deps.onClosed(this));
  }

  /** Resolves once it is connected, or failed. */
  whenReady(): Promise<boolean> {
    return new Promise((resolve) => {
      const late = setTimeout(() => this.close(), CONNECT_MS);
      const settle = (isIn: boolean) => {
        clearTimeout(late);
        resolve(isIn);
      };
      this.#socket.once('connect', () => settle(true)).once('close', () => settle(false));
    });
  }

  get isBusy(): boolean {
    return this.#socket.writableLength > BUSY_BYTES;
  }

  /** Drops the frame if the guest accepts none. `framed`: with length prefix, must not change later. */
  send(framed: Buffer): void {
    if (this.#socket.writableLength > FULL_BYTES || this.#socket.destroyed) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#isBehind = this.#socket.writableLength > 0;
      this.#socket.cork();
      queueMicrotask(() => {
        this.#isCorked = false;
        this.#socket.uncork();
      });
    }
    // A waiting frame is copied: a short one would otherwise keep everything in memory that arrived
    // with it.
    this.#socket.write(this.#isBehind ? Buffer.from(framed) : framed);
  }

  /** The guest's sends are paused. */
  hold(): void {
    this.#socket.pause();
  }

  release(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(bytes: Buffer): void {
    const all = this.#rest === null ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (all.length - at >= LENGTH_BYTES) {
      const length = all.readUInt32BE(at);
      if (length > MAX_FRAME_BYTES) {
        this.close();
        return;
      }
      const end = at + LENGTH_BYTES + length;
      if (end > all.length) break;
      this.#deps.enter(this, all.subarray(at, end));
      at = end;
    }
    this.#rest = at === all.length ? null : all.subarray(at);
    this.#deps.settle();
  }
}

export function ipNumber(address: string): number {
  return address.split('.').reduce((number, part) => number * 256 + Number(part), 0);
}
