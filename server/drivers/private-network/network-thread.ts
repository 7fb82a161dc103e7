/** Runs the networks of all accounts on a separate thread: no frame passes Cloudlet's event loop. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { AccountNetwork, type Member, PERIOD_MS, SwitchPort } from '../../../libs/net/index.ts';
import { systemClock } from '../../platform/clock.ts';
import { SharedSlots } from '../../platform/shared-slots.ts';
import { ThreadStream } from './thread-stream.ts';

/** Address of the data origin on this host. */
export interface DataOrigin {
  readonly host: string;
  readonly port: number;
  /** Maximum concurrent connections from all accounts' machines to it. */
  readonly maxConnections: number;
}

/** Messages to the thread. */
export type ThreadCall =
  | { readonly kind: 'connect'; readonly member: Member; readonly path: string }
  | { readonly kind: 'disconnect'; readonly vmId: string }
  | { readonly kind: 'found'; readonly id: number; readonly number: Found }
  | { readonly kind: 'keys'; readonly id: number; readonly keys: readonly string[] }
  | { readonly kind: 'dialed'; readonly id: number; readonly target: DialTarget };

/** Number of the database with that name; null: there is none; `unknown`: the look-up failed. */
export type Found = number | null | 'unknown';

/** How a database is reached; null: refused. */
export type DialTarget = MessagePort | 'data' | null;

/** Messages of the thread. */
export type ThreadMessage =
  | { readonly kind: 'connected'; readonly vmId: string; readonly isIn: boolean }
  | { readonly kind: 'lost'; readonly vmId: string }
  | { readonly kind: 'find'; readonly id: number; readonly accountId: number; readonly name: string }
  | { readonly kind: 'keys'; readonly id: number; readonly accountId: number; readonly vmId: string }
  | { readonly kind: 'dial'; readonly id: number; readonly request: DialRequest };

export interface DialRequest {
  readonly accountId: number;
  /** Number of the database, see Gateway. */
  readonly number: number;
  readonly port: number;
}

const TICK_MS = 250;
const S3_PORT = 80;
const port = parentPort;
if (port === null) throw new Error('not a thread');
const data = workerData as DataOrigin;
const machinePorts = new Map<string, SwitchPort>();
const networks = new Map<number, AccountNetwork>();
/** By account. */
const dataSlots = new SharedSlots<number>(data.maxConnections);
const asked = new Map<number, (answer: never) => void>();
let lastId = 0;

function tell(message: ThreadMessage): void {
  port?.postMessage(message);
}

function ask<T>(messageOf: (id: number) => ThreadMessage): Promise<T> {
  const id = ++lastId;
  return new Promise((resolve) => {
    asked.set(id, resolve);
    tell(messageOf(id));
  });
}

/** Each machine calls from its own loopback address, so that the data origin can limit callers separately. */
async function dialData(machinePort: SwitchPort): Promise<Duplex | null> {
  const from =
    process.platform === 'linux' ? { localAddress: machinePort.member.address.replace(/^\d+/, '127') } : {};
  const { host, port: toPort } = data;
  let socket: Socket | undefined;
  const giveBack = dataSlots.take(machinePort.member.accountId, () => socket?.destroy());
  if (giveBack === null) return null;
  socket = connect({ host, port: toPort, ...from, allowHalfOpen: true, noDelay: true });
  socket.once('close', giveBack);
  await once(socket, 'connect');
  return socket;
}

async function dialDatabase(machinePort: SwitchPort, number: number, toPort: number): Promise<Duplex | null> {
  const request = { accountId: machinePort.member.accountId, number, port: toPort };
  const target = await ask<DialTarget>((id) => ({ kind: 'dial', id, request }));
  if (target === 'data') return dialData(machinePort);
  return target === null ? null : new ThreadStream(target);
}

/** Rejects while it is unknown: the guest gets no answer, and asks again. */
async function findDatabase(accountId: number, name: string): Promise<number | null> {
  const found = await ask<Found>((id) => ({ kind: 'find', id, accountId, name }));
  if (found === 'unknown') throw new Error('the name cannot be looked up now');
  return found;
}

function networkOf(accountId: number): AccountNetwork {
  const known = networks.get(accountId);
  if (known !== undefined) return known;
  const network = new AccountNetwork({
    findDatabase: (name) => findDatabase(accountId, name),
    dialDatabase,
    dialData,
    keysFor: ({ member: { vmId } }) => ask((id) => ({ kind: 'keys', id, accountId, vmId })),
    dataPorts: new Set([S3_PORT, data.port]),
    now: () => systemClock.monotonic(),
  });
  networks.set(accountId, network);
  return network;
}

async function connectMachine(member: Member, path: string): Promise<void> {
  const { vmId, accountId } = member;
  const network = networkOf(accountId);
  const machinePort = new SwitchPort(member, path, {
    enter: (from, frame) => network.enter(from, frame),
    settle: () => network.settle(),
    onRoom: (from) => network.onRoom(from),
    onClosed: (from) => {
      network.leave(from);
      if (network.isEmpty) networks.delete(accountId);
      if (machinePorts.get(vmId) !== from) return;
      machinePorts.delete(vmId);
      tell({ kind: 'lost', vmId });
    },
  });
  machinePorts.set(vmId, machinePort);
  const isIn = network.join(machinePort);
  if (!isIn) machinePort.close();
  tell({ kind: 'connected', vmId, isIn: (await machinePort.whenReady()) && isIn });
}

function disconnectMachine(vmId: string): void {
  const machinePort = machinePorts.get(vmId);
  machinePorts.delete(vmId);
  machinePort?.close();
}

function settle(id: number, answer: unknown): void {
  asked.get(id)?.(answer as never);
  asked.delete(id);
}

port.on('message', (call: ThreadCall) => {
  if (call.kind === 'connect') void connectMachine(call.member, call.path);
  else if (call.kind === 'disconnect') disconnectMachine(call.vmId);
  else if (call.kind === 'found') settle(call.id, call.number);
  else if (call.kind === 'keys') settle(call.id, call.keys);
  else settle(call.id, call.target);
});
setInterval(() => {
  for (const network of networks.values()) network.renew();
}, PERIOD_MS);
setInterval(() => {
  for (const network of networks.values()) network.tick();
}, TICK_MS);
