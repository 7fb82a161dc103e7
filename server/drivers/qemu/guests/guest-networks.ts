/** Guests' networks: QEMU's own behind this host, or a device on a bridge. */

import { isIPv4 } from 'node:net';
import type { GuestEndpoint, GuestNetwork, GuestSpec, ReachedPort } from '../../../compute/hypervisor.ts';
import { AppError } from '../../../platform/errors.ts';
import type { NoOtherUsers } from '../../../platform/host/other-users.ts';
import type { Launch } from '../arguments.ts';
import { writeSeed } from '../images/disk.ts';
import type { StaticNetwork } from '../images/seed.ts';
import { type GuestFolders, type GuestRecord, guestAddress, SLOTS } from './guest-folders.ts';
import type { GuestRun } from './guest-run.ts';

/** Keeps this host closed to guests that may reach the outside. */
export interface OutboundGuard {
  /** false: the operator forbids outbound connections, regardless of the machines' settings. */
  readonly letsOut: boolean;
  /**
   * Must have resolved before each start of a guest. Rejects with an AppError that contains the
   * fix.
   */
  ensure(): Promise<void>;
  /** The same for an isolated guest, for which it is one of two barriers. Never rejects. */
  close(): Promise<void>;
  /** Error of the last ensure(), or null. */
  readonly refusal: AppError | null;
}

/** Guests with their own addresses. Rejects with AppErrors that have a fix. */
export interface GuestBridge {
  /** Creates a device only root may open, closed to all but the guest; returns its name. */
  plug(
    guest: Omit<GuestNetwork, 'address'> & { readonly address: string; readonly uid: number },
  ): Promise<string>;
  unplug(uid: number): Promise<void>;
  /** Network settings for that address; null: not in this network. */
  networkOf(address: string): StaticNetwork | null;
  /** Error of the last change, or null. */
  readonly refusal: AppError | null;
}

export interface GuestNetworksDeps {
  readonly folders: GuestFolders;
  readonly uidBase: number;
  /** Why guests have no users of their own; null: they have. */
  readonly noUsers: NoOtherUsers | null;
  /** null: no rules, and no outbound connections. */
  readonly outbound: OutboundGuard | null;
  /** null: QEMU's own network. */
  readonly bridge: GuestBridge | null;
  /** Whether guests have no network card. */
  readonly isCut: boolean;
}

interface Connection {
  readonly wires: Pick<Launch, 'outbound' | 'tap' | 'isCut'>;
  /**
   * Call as soon as the process exists; until it has resolved, no processor of the guest may run.
   * Rejects with `engine_unavailable` if the guest could reach this host.
   */
  readonly guard: () => Promise<void>;
}

export class GuestNetworks {
  readonly #deps: GuestNetworksDeps;

  constructor(deps: GuestNetworksDeps) {
    this.#deps = deps;
  }

  /** Why guests cannot be connected, as far as known. */
  get refusal(): AppError | null {
    return this.#deps.bridge?.refusal ?? this.#deps.outbound?.refusal ?? null;
  }

  /**
   * Call before every launch. Throws `engine_unavailable` if the guest cannot be connected at all.
   * Programs that protect this host run while the guest's own starts, because each takes time.
   */
  async connect(spec: GuestSpec, record: GuestRecord): Promise<Connection> {
    const { bridge, outbound, isCut } = this.#deps;
    if (isCut) {
      this.#seed(spec, record, null);
      return { wires: { outbound: false, tap: null, isCut }, guard: async () => {} };
    }
    const close = async () => outbound?.close();
    if (bridge !== null) return { wires: await this.#plug(bridge, spec, record), guard: close };
    const mayOut = outbound?.letsOut === true && spec.network.outbound;
    this.#seed(spec, record, null);
    const ensure = async () => {
      await outbound?.ensure();
      this.#userOf(record);
    };
    return { wires: { outbound: mayOut, tap: null, isCut }, guard: mayOut ? ensure : close };
  }

  async #plug(bridge: GuestBridge, spec: GuestSpec, record: GuestRecord): Promise<Connection['wires']> {
    const { address } = spec.network;
    const network = address === null ? null : bridge.networkOf(address);
    if (address === null || network === null) throw notOfThisNetwork(address);
    const tap = await bridge.plug({ ...spec.network, address, uid: this.#userOf(record) });
    this.#seed(spec, record, network);
    return { outbound: false, tap, isCut: false };
  }

  /** Written for each run, because address and network may have changed. */
  #seed(spec: GuestSpec, { uid }: GuestRecord, network: StaticNetwork | null): void {
    writeSeed(this.#deps.folders.guestPath(spec.vmId), { ...spec, staticNetwork: network }, uid);
  }

  /** Throws if guests have no users of their own, which a guest created with one needs. */
  assertUsers(): void {
    const { noUsers } = this.#deps;
    if (noUsers === null) return;
    const detail = `this machine needs its own user, and ${noUsers.problem}`;
    throw new AppError('engine_unavailable', detail, { hint: noUsers.fix });
  }

  /** Throws for a guest created without root or under another setting: no rule matches its user. */
  #userOf({ uid }: GuestRecord): number {
    this.assertUsers();
    const { uidBase } = this.#deps;
    if (uid !== null && uid >= uidBase && uid < uidBase + SLOTS) return uid;
    const detail = 'this machine was created under another user, which the firewall rules do not cover';
    const hint = 'run Cloudlet as root with the earlier CLOUDLET_VM_UID_BASE, or create the machine again';
    throw new AppError('engine_unavailable', detail, { hint });
  }

  /** Call before its processor runs. Resolves with the endpoints of its ports from now on. */
  async forward(run: GuestRun, ports: readonly number[]): Promise<Forwards> {
    const record = this.#deps.folders.find(run.vmId);
    if (this.#deps.bridge !== null || this.#deps.isCut || record === undefined) return {};
    return addForwards(run, guestAddress(record.slot), ports);
  }

  /** Call it after the guest's process has ended. Never rejects: leftovers are removed at the next start. */
  async disconnect(vmId: string): Promise<void> {
    const uid = this.#deps.folders.find(vmId)?.uid;
    if (this.#deps.bridge === null || uid === undefined || uid === null) return;
    await this.#deps.bridge.unplug(uid).catch(() => undefined);
  }

  endpoint({ vmId, network }: Pick<GuestSpec, 'vmId' | 'network'>, port: number): GuestEndpoint | null {
    const record = this.#deps.folders.find(vmId);
    if (record === undefined || !network.ports.includes(port)) return null;
    if (this.#deps.bridge !== null) return network.address === null ? null : { host: network.address, port };
    return this.#deps.folders.run(vmId)?.forwards[port] ?? null;
  }

  /** See Hypervisor.reach(). */
  async reach(run: GuestRun, network: GuestNetwork, port: number): Promise<ReachedPort | null> {
    const { folders, bridge } = this.#deps;
    const known = this.endpoint({ vmId: run.vmId, network }, port);
    if (known !== null) return { endpoint: known, giveUp: async () => {} };
    if (bridge !== null) {
      const { address: host } = network;
      return host === null ? null : { endpoint: { host, port }, giveUp: async () => {} };
    }
    const record = folders.find(run.vmId);
    if (record === undefined) return null;
    const { [port]: endpoint } = await addForwards(run, guestAddress(record.slot), [port]);
    if (endpoint === undefined) return null;
    return { endpoint, giveUp: () => removeForward(run, endpoint).catch(() => {}) };
  }
}

function notOfThisNetwork(address: string | null): AppError {
  const detail = `the address of this machine (${address ?? 'none'}) is outside the bridge's network`;
  const hint = 'create the machine again, or restore the earlier CLOUDLET_VM_POOL and CLOUDLET_VM_NETWORK';
  return new AppError('engine_unavailable', detail, { hint });
}

/** Endpoints by guest port. */
export type Forwards = Readonly<Record<number, GuestEndpoint>>;

/** Ports above privileged ones, below the kernel's ephemeral ones. */
const FIRST_PORT = 20_000;
/** No host has this many consecutive ports in use on every address. */
const MAX_REFUSED = 1000;

/**
 * Makes QEMU listen for these ports at `host`, a loopback address of this guest alone. An
 * unavailable port, because another program listens at every address, is skipped. Throws
 * `engine_unavailable`, and QmpErrors.
 */
export async function addForwards(
  run: Pick<GuestRun, 'command'>,
  host: string,
  guestPorts: readonly number[],
): Promise<Forwards> {
  if (!isIPv4(host) || !host.startsWith('127.')) throw new Error('not an address for a forward');
  const forwards: Record<number, GuestEndpoint> = {};
  let next = FIRST_PORT;
  for (let missing = guestPorts; missing.length > 0; ) {
    const tries = missing.map((guestPort) => ({ guestPort, port: next++ }));
    // Sent together, because the guest waits for them.
    const answers = await Promise.all(
      tries.map(({ port, guestPort }) => add(run, { host, port }, guestPort)),
    );
    for (const [index, { guestPort, port }] of tries.entries()) {
      if (answers[index] === '') forwards[guestPort] = { host, port };
    }
    missing = missing.filter((guestPort) => forwards[guestPort] === undefined);
    if (next > FIRST_PORT + guestPorts.length + MAX_REFUSED) throw nothingFree(host, answers.find(Boolean));
  }
  return forwards;
}

/** Resolves with QEMU's error message; empty: done. */
async function add(
  run: Pick<GuestRun, 'command'>,
  { host, port }: GuestEndpoint,
  guestPort: number,
): Promise<string> {
  const line = `hostfwd_add net0 tcp:${host}:${port}-:${guestPort}`;
  const answer = await run.command('human-monitor-command', { 'command-line': line });
  return String(answer).trim();
}

/** Connections that went through it stay. */
async function removeForward(run: Pick<GuestRun, 'command'>, { host, port }: GuestEndpoint): Promise<void> {
  await run.command('human-monitor-command', { 'command-line': `hostfwd_remove net0 tcp:${host}:${port}` });
}

function nothingFree(host: string, words: string | undefined): AppError {
  const detail = `QEMU cannot listen at ${host}, an address of this host: ${words ?? 'no message'}`;
  const hint = 'check which program or rule of this host blocks ports from 20000';
  return new AppError('engine_unavailable', detail, { hint });
}
