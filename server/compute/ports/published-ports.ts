/**
 * Published ports: a TCP port of a machine that everyone who reaches this host can reach, on a port
 * of the host or, for HTTP, under a host name. They respond while the machine runs.
 */
import type { Socket } from 'node:net';
import type { Call } from '../../calls/principal.ts';
import { BACKGROUND, type Change, type Changes } from '../../metadata/change.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import type { RestingNamesStore } from '../../metadata/resting-names-store.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError, invalidField, isAppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { type Announce, eventOf } from '../../resources/row-change.ts';
import { NOT_RUNNING } from '../ingress.ts';
import type { VmEventType } from '../machines/lifecycle.ts';
import type { Machines, OpenFiles } from '../machines/machines.ts';
import type { VmBilling } from '../machines/vm-billing.ts';
import type { VmRow } from '../machines/vm-store.ts';
import { IDLE_MS, PortChoice, portTaken } from './port-choice.ts';
import { PublishedConnections, type PublishedConnectionsDeps } from './published-connections.ts';
import type { NewPublishedPort, PublishedPort } from './published-ports-schema.ts';
import type { IdlePort, PublishedPortsStore, PublishedRow } from './published-ports-store.ts';
import { RESERVED_HOSTNAMES } from './reserved-hostnames.ts';

/** Limit of accounts with only sign-up credits, which anyone can register. */
const MAX_UNTRUSTED = 5;

/** Connects to a TCP port of the machine's guest, in its present run; null: the port does not respond. */
export type Dial = (guestPort: number) => Promise<Socket | null>;

/**
 * Connects a visitor, named as by sourceOf(), to the machine's port; null: the port does not
 * respond, or no slot is free.
 */
export type ForVisitor = (source: string) => Promise<Socket | null>;

/** Ports of this host that lead to machines. */
export interface PublicListeners {
  /** Resolves with why the port is closed, for its owner; null: it listens. */
  open(port: number, dial: ForVisitor): Promise<string | null>;
  /** Whether a program could listen on the port now. */
  isFree(port: number): Promise<boolean>;
  /** Ends the port's connections too. No error if already closed. */
  close(port: number): Promise<void>;
}

export interface PublishingRules {
  /** The ports that may be published, both ends included; null: none. */
  readonly range: { readonly first: number; readonly last: number } | null;
  /** Ports of the range that this cloud itself listens on. */
  readonly reserved: ReadonlySet<number>;
  /** Domain of machines' host names; empty: none. */
  readonly domain: string;
  /** Maximum per account. */
  readonly max: number;
  /** Maximum connections through ports and names, of all accounts together. */
  readonly maxConnections: number;
}

export interface PublishedPortsDeps {
  readonly changes: Changes;
  readonly store: PublishedPortsStore;
  readonly resting: RestingNamesStore;
  readonly clock: Clock;
  readonly find: Machines['findFor'];
  readonly machine: (vmId: string) => Awaitable<VmRow | undefined>;
  readonly announce: Announce<VmEventType>;
  /** See Exposures.openPublished(). */
  readonly open: (row: VmRow) => Promise<void>;
  readonly listeners: PublicListeners;
  /** Resolves once other nodes have the ports of `listeners` too; missing: no other nodes. */
  readonly everywhere?: (() => Promise<void>) | undefined;
  readonly rules: PublishingRules;
  readonly billing: Pick<VmBilling, 'isTrusted'>;
  readonly descriptors: OpenFiles;
  /** Bytes that machines sent to others, for billing. */
  readonly sent: PublishedConnectionsDeps['sent'];
  /** The host in addresses of public ports; null: the API's. */
  readonly shownHost: string | null;
  /** Where users reach the API and the data origin, `https://host`. */
  readonly apiUrl: () => string;
  readonly dataUrl: () => string;
  readonly onError: (vmId: string, what: string, error: unknown) => void;
}

/** One run of a machine with published ports. */
interface Run {
  readonly row: VmRow;
  readonly dial: Dial;
  /** Why each public port is closed; null: it is open. */
  readonly reasons: Map<number, string | null>;
  /** The machine's port behind each public port. */
  guestPorts: ReadonlyMap<number, number>;
}

export class PublishedPorts {
  readonly #deps: PublishedPortsDeps;
  readonly #runs = new Map<string, Run>();
  /** Serializes opening and closing the ports of each machine. */
  readonly #turns = new Map<string, Promise<void>>();
  readonly #connections: PublishedConnections;
  readonly #choice: PortChoice;

  constructor(deps: PublishedPortsDeps) {
    this.#deps = deps;
    this.#choice = new PortChoice(deps);
    this.#connections = new PublishedConnections({ ...deps, maxConnections: deps.rules.maxConnections });
  }

  /**
   * Throws `vm_not_found`, `port_taken` for a port or name of another account or program,
   * `too_many_ports`, `no_free_port`, and `invalid_request` for a port or name outside the
   * published range or domain.
   */
  async publish(call: Call, vmId: string, wanted: NewPublishedPort): Promise<PublishedPort> {
    const { find, changes, store, resting, clock } = this.#deps;
    const vm = await find(call.principal, vmId);
    const max = await this.#maxOf(vm.account_id);
    const { hostname, chosen } = await this.#address(wanted);
    const row = {
      port_id: newId('port', clock),
      vm_id: vm.vm_id,
      account_id: vm.account_id,
      guest_port: wanted.port,
      public_port: chosen?.port ?? null,
      former_port: null,
      hostname,
      created_at: clock.now(),
    };
    let begun: Promise<void> | undefined;
    const stored = changes.run(call, async (change) => {
      change.expect(store.expectMachine(vmId), noMachine);
      if (hostname !== null) {
        const wish = { kind: 'host', name: hostname, accountId: row.account_id, at: clock.now() } as const;
        change.expect(resting.expectNotForAnother(wish), () => portTaken(row));
        change.add(resting.wake('host', hostname));
      }
      if (chosen?.idle) await this.#giveAway(change, chosen.idle);
      change.expect(store.insert(row), () => portTaken(row));
      change.expect(store.expectAtMost(row.account_id, max), () => this.#tooMany(max));
      change.after(() => {
        begun = this.#begin(vm);
      });
      return this.#present(row);
    });
    const published = await stored.finally(() => chosen !== null && this.#choice.done(chosen));
    await begun;
    if (chosen !== null) await this.#deps.everywhere?.();
    return published;
  }

  /** The machine of the port has not run for a long time. */
  async #giveAway(change: Change, idle: IdlePort): Promise<void> {
    const { store, clock, machine, announce } = this.#deps;
    change.expect(store.giveAway(idle, clock.now() - IDLE_MS), startedMeanwhile);
    const vm = await machine(idle.vm_id);
    const row = { ...idle, public_port: null, former_port: idle.public_port };
    if (vm !== undefined) change.addAll(announce(portChanged(vm, row, clock.now())));
  }

  /** Replaces a machine's ports that were reassigned while it was stopped; none is left without a port. */
  async #regain({ row: vm }: Run): Promise<void> {
    const { store, changes, clock, announce } = this.#deps;
    const rows: PublishedRow[] = await store.listOf(vm.vm_id);
    for (const row of rows.filter(isGivenAway)) {
      const chosen = await this.#choice.any(row.former_port).catch(ignoreNone);
      if (chosen === undefined) return;
      const { port, idle } = chosen;
      await changes
        .run(BACKGROUND, async (change) => {
          if (idle !== null) await this.#giveAway(change, idle);
          change.expect(store.regain(row, port), 'skip');
          change.addAll(announce(portChanged(vm, { ...row, public_port: port }, clock.now())));
        })
        .finally(() => this.#choice.done(chosen));
    }
  }

  async #maxOf(accountId: number): Promise<number> {
    const { billing, rules } = this.#deps;
    if (rules.max <= MAX_UNTRUSTED || (await billing.isTrusted(accountId))) return rules.max;
    return MAX_UNTRUSTED;
  }

  #tooMany(max: number): AppError {
    const { rules } = this.#deps;
    const more = `; with credits that an administrator grants, ${rules.max}`;
    return tooMany(max, max < rules.max ? more : '');
  }

  async list(principal: Call['principal'], vmId: string): Promise<PublishedPort[]> {
    await this.#deps.find(principal, vmId);
    return (await this.#deps.store.listOf(vmId)).map((row) => this.#present(row));
  }

  /** Ends its connections. Throws `vm_not_found` and `port_not_found`. */
  async withdraw(call: Call, vmId: string, portId: string): Promise<{ port_id: string; deleted: true }> {
    const { find, changes, store, resting, clock } = this.#deps;
    await find(call.principal, vmId);
    const row = (await store.listOf(vmId)).find(({ port_id }) => port_id === portId);
    if (row === undefined) throw noPort();
    return changes.run(call, (change) => {
      change.addAll(resting.restPort(row, clock.now()));
      change.expect(store.delete(row), noPort);
      change.after(() => void this.#refresh(vmId));
      return { port_id: portId, deleted: true };
    });
  }

  /** A run of the machine began, or continues after a restart of Cloudlet. Never rejects. */
  async opened(row: VmRow, dial: Dial): Promise<void> {
    if (!this.#runs.has(row.vm_id))
      this.#runs.set(row.vm_id, { row, dial, reasons: new Map(), guestPorts: new Map() });
    await this.#refresh(row.vm_id);
  }

  /** The run has ended. Never rejects. */
  async closed(vmId: string): Promise<void> {
    const run = this.#runs.get(vmId);
    this.#runs.delete(vmId);
    if (run !== undefined) await this.#inTurn(vmId, () => this.#match(run, []));
  }

  /** Ends all connections; machines continue. */
  async close(): Promise<void> {
    await Promise.all([...this.#runs.keys()].map((vmId) => this.closed(vmId)));
  }

  /** Connects visitors to the port with that host name, the label below the domain. */
  async named(hostname: string): Promise<ForVisitor | 'unknown' | 'stopped'> {
    const row = await this.#deps.store.withHostname(hostname);
    if (row === undefined) return 'unknown';
    const run = this.#runs.get(row.vm_id);
    return run === undefined ? 'stopped' : (source) => this.#dial(run, row.guest_port, source);
  }

  /** See PublishedConnections. */
  countSent(): void {
    this.#connections.countSent();
  }

  async #address({ public_port, hostname }: NewPublishedPort) {
    const { domain } = this.#deps.rules;
    if (hostname !== undefined && public_port !== undefined) {
      throw invalidField('hostname', 'cannot be combined with public_port: publish the port twice');
    }
    if (hostname !== undefined) {
      if (isReserved(hostname)) throw portTaken({ public_port: null, hostname });
      if (domain === '')
        throw invalidField('hostname', 'needs a domain: ask your operator to set CLOUDLET_APPS_DOMAIN');
      return { hostname, chosen: null };
    }
    const choice = this.#choice;
    const chosen = await (public_port === undefined ? choice.any() : choice.wanted(public_port));
    return { hostname: null, chosen };
  }

  /** Notifies a machine of its first published port. */
  #begin(row: VmRow): Promise<void> {
    const isUp = row.state === 'running' || row.state === 'starting';
    return isUp && !this.#runs.has(row.vm_id) ? this.#deps.open(row) : this.#refresh(row.vm_id);
  }

  /** Brings the listeners of the machine in line with its rows. Never rejects. */
  #refresh(vmId: string): Promise<void> {
    return this.#inTurn(vmId, async () => {
      const run = this.#runs.get(vmId);
      if (run === undefined) return;
      await this.#regain(run);
      await this.#match(run, await this.#deps.store.listOf(vmId));
    });
  }

  async #match(run: Run, rows: readonly PublishedRow[]): Promise<void> {
    const { listeners } = this.#deps;
    const wanted = new Map(
      rows.flatMap(({ public_port: port, guest_port }) => (port === null ? [] : [[port, guest_port]])),
    );
    // A port that was unpublished and published again keeps its listener, but may have another target.
    run.guestPorts = wanted;
    for (const port of [...run.reasons.keys()].filter((port) => !wanted.has(port))) {
      run.reasons.delete(port);
      await listeners.close(port);
    }
    for (const port of wanted.keys()) {
      if (run.reasons.get(port) === null) continue;
      const dial = async (source: string) => this.#dial(run, run.guestPorts.get(port), source);
      run.reasons.set(port, await listeners.open(port, dial));
    }
  }

  #inTurn(vmId: string, work: () => Promise<void>): Promise<void> {
    const failed = (error: unknown) => this.#deps.onError(vmId, 'opening its published ports failed', error);
    const turn = (this.#turns.get(vmId) ?? Promise.resolve()).then(work).catch(failed);
    this.#turns.set(vmId, turn);
    return turn.finally(() => {
      if (this.#turns.get(vmId) === turn) this.#turns.delete(vmId);
    });
  }

  async #dial(run: Run, guestPort: number | undefined, source: string): Promise<Socket | null> {
    const { vm_id: vmId, account_id: accountId } = run.row;
    if (guestPort === undefined) return null;
    return this.#connections.dial({ accountId, vmId, source }, () => run.dial(guestPort));
  }

  #present(row: PublishedRow): PublishedPort {
    const { apiUrl, dataUrl, rules, shownHost } = this.#deps;
    const { public_port: port, hostname } = row;
    const run = this.#runs.get(row.vm_id);
    const whenRunning = port === null ? null : (run?.reasons.get(port) ?? null);
    const whenHere = run === undefined ? NOT_RUNNING : whenRunning;
    const reason = isGivenAway(row) ? whyGivenAway(row, run !== undefined) : whenHere;
    const data = new URL(dataUrl());
    const address =
      hostname !== null
        ? `${data.protocol}//${hostname}.${rules.domain}${data.port === '' ? '' : `:${data.port}`}`
        : `${shownHost ?? new URL(apiUrl()).hostname}:${port ?? ''}`;
    return {
      port_id: row.port_id,
      vm_id: row.vm_id,
      port: row.guest_port,
      public_port: port,
      former_port: row.former_port,
      hostname,
      address,
      open: reason === null,
      reason,
      created_at: formatTime(row.created_at),
    };
  }
}

/** Punycode names, `xn--…` (RFC 5890 §2.3.1), can look like any other. */
function isReserved(hostname: string): boolean {
  return RESERVED_HOSTNAMES.has(hostname) || /^..--/.test(hostname);
}

/** Neither a port nor a name: the port went to another machine. */
function isGivenAway({ public_port, hostname }: PublishedRow): boolean {
  return public_port === null && hostname === null;
}

function whyGivenAway({ former_port }: PublishedRow, isRunning: boolean): string {
  const why = `Port ${former_port} was reassigned to another machine, because this one had not run for 24 hours`;
  return isRunning ? `${why}, and no port is free` : `${why}; the machine gets a port at its next start`;
}

function portChanged(vm: VmRow, row: PublishedRow, at: number) {
  const { vm_id, port_id, guest_port: port, public_port, former_port } = row;
  return eventOf('vm.port_changed', vm, { at, vm_id, port_id, port, public_port, former_port });
}

/** No port is free: the machine starts without one. */
function ignoreNone(error: unknown): undefined {
  if (!isAppError(error, 'no_free_port') && !isAppError(error, 'invalid_request')) throw error;
}

function startedMeanwhile(): AppError {
  return new AppError('no_free_port', 'The machine with the idle port has just started', {
    hint: 'Try again: another port may be free',
  });
}

function noMachine(): AppError {
  return new AppError('vm_not_found', 'You have no such virtual machine');
}

function noPort(): AppError {
  return new AppError('port_not_found', 'The virtual machine has no such published port');
}

function tooMany(max: number, more: string): AppError {
  return new AppError('too_many_ports', `An account can have at most ${max} published ports${more}`, {
    hint: more === '' ? 'Remove an unused port' : 'Remove an unused port, or ask your administrator',
  });
}
