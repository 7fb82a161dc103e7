/** Opens the address of each machine while it runs, and records when its guest first answered. */
import type { Socket } from 'node:net';
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Hypervisor } from '../hypervisor.ts';
import type { Ingress, PortState } from '../ingress.ts';
import type { PublishedPorts } from '../ports/published-ports.ts';
import { guestNetwork } from './runs.ts';
import type { VmRow, VmStore } from './vm-store.ts';

/** Receives errors of a machine that no caller waits for. */
export type OnError = (vmId: string, what: string, error: unknown) => void;

export interface ExposuresDeps {
  readonly ingress: Ingress;
  readonly hypervisor: Hypervisor;
  readonly changes: Changes;
  readonly store: VmStore;
  readonly clock: Clock;
  /** Absent: machines publish no ports. */
  readonly published?: Pick<PublishedPorts, 'opened' | 'closed'> | undefined;
  readonly onError: OnError;
  /** Called with ports that stay closed; the machine runs anyway. */
  readonly onClosedPorts: (vmId: string, ports: readonly PortState[]) => void;
}

/** Time in which an engine accepts an established connection, ms. */
const TAKEN_MS = 2000;

export class Exposures {
  readonly #deps: ExposuresDeps;
  /** Machines whose published ports are open. */
  readonly #published = new Set<string>();

  constructor(deps: ExposuresDeps) {
    this.#deps = deps;
  }

  /** Opens the machine's address for a new or continued run. Never rejects. */
  async open(row: VmRow): Promise<void> {
    const { ingress, hypervisor, onError, onClosedPorts } = this.#deps;
    if (row.address === null) return;
    const vmId = row.vm_id;
    const network = guestNetwork(row);
    try {
      const closed = await ingress.open({
        vmId,
        address: row.address,
        guestPorts: network.ports,
        endpointOf: (port) => hypervisor.endpoint({ vmId, network }, port),
        onSignOfLife: () => void this.#markReady(row),
      });
      if (closed.length > 0) onClosedPorts(vmId, closed);
    } catch (error) {
      onError(vmId, 'opening the address of a machine failed', error);
    }
    if (row.published > 0) await this.openPublished(row);
  }

  /** Opens the published ports of a machine that runs. Never rejects. */
  async openPublished(row: VmRow): Promise<void> {
    this.#published.add(row.vm_id);
    await this.#deps.published?.opened(row, (port) => this.dial(row, port));
  }

  /** Called when the guest runs and its row is stored. */
  begin(vmId: string): void {
    this.#deps.ingress.begin(vmId);
  }

  /**
   * A connection to that TCP port of the machine's own guest, in its present run; null: the port
   * does not respond. Throws `engine_unavailable`.
   */
  async dial(row: VmRow, port: number): Promise<Socket | null> {
    const { ingress, hypervisor } = this.#deps;
    const reached = await hypervisor.reach({ vmId: row.vm_id, network: guestNetwork(row) }, port);
    if (reached === null) return null;
    const socket = await ingress.dial(row.vm_id, port, reached.endpoint);
    const giveUp = () => void reached.giveUp();
    if (socket === null) {
      giveUp();
      return null;
    }
    // Delayed: the engine has not accepted the connection yet.
    const timer = setTimeout(giveUp, TAKEN_MS).unref();
    socket.once('close', () => {
      clearTimeout(timer);
      giveUp();
    });
    return socket;
  }

  async close(vmId: string): Promise<void> {
    const { ingress, published } = this.#deps;
    const isPublished = this.#published.delete(vmId);
    await Promise.all([ingress.close(vmId), isPublished ? published?.closed(vmId) : undefined]);
  }

  async #markReady(row: VmRow): Promise<void> {
    const { changes, store, clock, onError } = this.#deps;
    try {
      await changes.run(BACKGROUND, (change) => change.add(store.markReady(row, clock.now())));
    } catch (error) {
      onError(row.vm_id, 'storing the ready time of a machine failed', error);
    }
  }
}
