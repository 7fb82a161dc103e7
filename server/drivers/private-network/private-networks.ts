/** Connects running machines to the networks of their accounts, on a separate thread. */
import type { Duplex } from 'node:stream';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { GatheredWrites } from '../../../libs/net/index.ts';
import type { HeldSocket } from '../../compute/hypervisor.ts';
import type { NetworkMember, NetworkServices, PrivateSwitch } from '../../compute/private-network.ts';
import { programFile } from '../../platform/program-files.ts';
import type { DataOrigin, DialRequest, DialTarget, ThreadCall, ThreadMessage } from './network-thread.ts';
import { ThreadStream } from './thread-stream.ts';

export interface PrivateNetworksDeps {
  /** See Hypervisor.privateSocket(). */
  readonly socketOf: (vmId: string) => HeldSocket | null;
  readonly services: NetworkServices;
  /** SSH keys that open the account's machine now. */
  readonly keysOf: (accountId: number, vmId: string) => Promise<readonly string[]>;
  /** Called once users are served. */
  readonly data: () => DataOrigin;
  readonly warn: (text: string) => void;
}

interface Kept {
  readonly run: string;
  readonly connected: Promise<boolean>;
  settle(isIn: boolean): void;
}

export class PrivateNetworks implements PrivateSwitch {
  readonly #deps: PrivateNetworksDeps;
  readonly #kept = new Map<string, Kept>();
  #thread: Worker | null = null;
  #isClosed = false;

  constructor(deps: PrivateNetworksDeps) {
    this.#deps = deps;
  }

  async sync(members: readonly NetworkMember[]): Promise<void> {
    if (this.#isClosed) return;
    const wanted = new Map(members.map((member) => [member.vmId, member]));
    for (const [vmId, { run }] of this.#kept) {
      if (wanted.get(vmId)?.run !== run) this.#disconnect(vmId);
    }
    await Promise.all(members.map((member) => this.#connect(member)));
  }

  stop(): void {
    this.#isClosed = true;
    this.#forgetAll();
  }

  async close(): Promise<void> {
    this.stop();
    await this.#thread?.terminate();
  }

  async #connect({ run, ...member }: NetworkMember): Promise<void> {
    const { vmId } = member;
    if (this.#kept.has(vmId)) return;
    const socket = this.#deps.socketOf(vmId);
    if (socket === null) return;
    const { promise: connected, resolve: settle } = Promise.withResolvers<boolean>();
    this.#kept.set(vmId, { run, connected, settle });
    this.#tell({ kind: 'connect', member, path: socket.path });
    if (!(await connected)) this.#kept.delete(vmId);
    socket.close();
  }

  #disconnect(vmId: string): void {
    this.#forget(vmId);
    this.#tell({ kind: 'disconnect', vmId });
  }

  /** Fails pending connection requests: a connection may be lost before it is established. */
  #forget(vmId: string): void {
    this.#kept.get(vmId)?.settle(false);
    this.#kept.delete(vmId);
  }

  #tell(call: ThreadCall, transfer: readonly MessagePort[] = []): void {
    if (this.#isClosed) return;
    this.#thread ??= this.#start();
    this.#thread.postMessage(call, [...transfer]);
  }

  #start(): Worker {
    const { data, warn } = this.#deps;
    const thread = new Worker(programFile('drivers/private-network/network-thread'), {
      execArgv: [],
      workerData: data(),
    });
    thread.on('message', (message: ThreadMessage) => void this.#receive(message));
    thread.once('error', (error) => warn(`the thread of private networks failed: ${error}`));
    thread.once('exit', () => {
      // The next sync() connects all machines to another one.
      this.#thread = null;
      this.#forgetAll();
    });
    thread.unref();
    return thread;
  }

  #forgetAll(): void {
    for (const { settle } of this.#kept.values()) settle(false);
    this.#kept.clear();
  }

  async #receive(message: ThreadMessage): Promise<void> {
    if (message.kind === 'connected') this.#kept.get(message.vmId)?.settle(message.isIn);
    else if (message.kind === 'lost') this.#forget(message.vmId);
    else if (message.kind === 'find') {
      const { id, accountId, name } = message;
      const number = await this.#deps.services.find(accountId, name).catch(() => 'unknown' as const);
      this.#tell({ kind: 'found', id, number });
    } else if (message.kind === 'keys') {
      const { id, accountId, vmId } = message;
      this.#tell({ kind: 'keys', id, keys: await this.#deps.keysOf(accountId, vmId).catch(() => []) });
    } else {
      const target = await this.#dial(message.request).catch(() => null);
      const transfer = target === null || target === 'data' ? [] : [target];
      this.#tell({ kind: 'dialed', id: message.id, target }, transfer);
    }
  }

  async #dial(request: DialRequest): Promise<DialTarget> {
    const opened = await this.#deps.services.dial(request);
    if (opened === null || opened === 'data') return opened;
    const { port1, port2 } = new MessageChannel();
    join(new ThreadStream(port1), opened);
    return port2;
  }
}

/** Bytes not yet read by one side; above, the other waits. */
const WINDOW_BYTES = 64 * 1024;

/** Each side ends after the other; an error on one destroys the other. */
function join(one: Duplex, other: Duplex): void {
  for (const [from, to] of [[one, other] as const, [other, one] as const]) {
    from.on('error', () => {});
    pump(from, to);
    from.once('close', () => {
      if (!from.readableEnded) to.destroy();
    });
  }
}

function pump(from: Duplex, to: Duplex): void {
  const writes = new GatheredWrites(to);
  from.on('data', (bytes: Buffer) => {
    writes.write(bytes);
    if (writes.length < WINDOW_BYTES) return;
    from.pause();
    void writes.whenTaken().then(() => from.resume());
  });
  from.once('end', () => writes.end());
}
