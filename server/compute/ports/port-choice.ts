/**
 * Chooses public ports. Ports cost nothing, so a stopped machine would keep its own forever: after
 * a day without a run it may be reassigned when none is free.
 */
import type { Clock } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import type { PublicListeners, PublishingRules } from './published-ports.ts';
import type { IdlePort, PublishedPortsStore, PublishedRow } from './published-ports-store.ts';

/** A machine that has not run for this long may lose its public ports, ms. */
export const IDLE_MS = 24 * 3_600_000;

/** A chosen port; the caller must call done(). */
export interface ChosenPort {
  readonly port: number;
  /** The machine that has the port but does not need it; null: the port is free. */
  readonly idle: IdlePort | null;
}

interface PortChoiceDeps {
  readonly store: Pick<PublishedPortsStore, 'publicPorts' | 'idlePorts'>;
  readonly listeners: Pick<PublicListeners, 'isFree'>;
  readonly rules: Pick<PublishingRules, 'range' | 'reserved'>;
  readonly clock: Clock;
}

export class PortChoice {
  readonly #deps: PortChoiceDeps;
  /** Chosen ports whose rows are not stored yet. */
  readonly #chosen = new Set<number>();

  constructor(deps: PortChoiceDeps) {
    this.#deps = deps;
  }

  /** Exactly this port. Throws `invalid_request` and `port_taken`. */
  async wanted(port: number): Promise<ChosenPort> {
    const { rules, listeners, store } = this.#deps;
    const { first, last } = this.#range();
    if (port < first || port > last) throw invalidField('public_port', `must be from ${first} to ${last}`);
    if (rules.reserved.has(port)) throw portTaken({ public_port: port, hostname: null });
    // A closed port of another account is free to the host; the row decides.
    const isOfMachine = (await store.publicPorts()).includes(port);
    if (isOfMachine || !(await listeners.isFree(port)))
      throw portTaken({ public_port: port, hostname: null });
    return { port, idle: null };
  }

  /** Preferably `former`. Throws `no_free_port`, and `invalid_request` where none are published. */
  async any(former: number | null = null): Promise<ChosenPort> {
    const { store, clock } = this.#deps;
    const { first, last } = this.#range();
    const used = new Set(await store.publicPorts());
    // A machine keeps its port when the range changes.
    if (former !== null && !used.has(former) && (await this.#take(former))) {
      return { port: former, idle: null };
    }
    for (let port = first; port <= last; port++) {
      if (!used.has(port) && (await this.#take(port))) return { port, idle: null };
    }
    for (const idle of inTurn(await store.idlePorts(clock.now() - IDLE_MS))) {
      const { public_port: port } = idle;
      if (port >= first && port <= last && (await this.#take(port))) return { port, idle };
    }
    throw new AppError('no_free_port', `All ports from ${first} to ${last} are in use`, {
      hint: 'Remove a published port, or ask your operator to enlarge CLOUDLET_PUBLISHED_PORTS',
    });
  }

  /** The port is stored, or no longer needed. */
  done({ port }: ChosenPort): void {
    this.#chosen.delete(port);
  }

  async #take(port: number): Promise<boolean> {
    const { rules, listeners } = this.#deps;
    if (this.#chosen.has(port) || rules.reserved.has(port)) return false;
    // Reserved before it is known to be free, because other requests run concurrently.
    this.#chosen.add(port);
    if (await listeners.isFree(port)) return true;
    this.#chosen.delete(port);
    return false;
  }

  #range(): NonNullable<PublishingRules['range']> {
    const { range } = this.#deps.rules;
    if (range !== null) return range;
    throw invalidField('public_port', 'is not available: this cloud publishes no ports of its host');
  }
}

/** Ports of the account with the most ports first, so that hoarding does not hurt others. */
function inTurn(idle: readonly IdlePort[]): IdlePort[] {
  const counts = new Map<number, number>();
  for (const { account_id } of idle) counts.set(account_id, (counts.get(account_id) ?? 0) + 1);
  const countOf = ({ account_id }: IdlePort) => counts.get(account_id) ?? 0;
  return idle.toSorted((a, b) => countOf(b) - countOf(a));
}

export function portTaken({
  public_port: port,
  hostname,
}: Pick<PublishedRow, 'public_port' | 'hostname'>): AppError {
  const detail = port === null ? `The name ${hostname} is taken` : `Port ${port} of this host is taken`;
  const hint =
    port === null ? 'Choose another name' : 'Choose another port, or leave public_port out for a free one';
  return new AppError('port_taken', detail, { hint });
}
