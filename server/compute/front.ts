/**
 * What compute needs of the place where a machine's address answers. The address is ours, from our own
 * pool, and the same for as long as the machine exists; the guest behind it comes and goes.
 */
import type { GuestEndpoint } from './hypervisor.ts';

export interface FrontPort {
  /** As the caller of the address sees it. */
  readonly port: number;
  readonly guestPort: number;
}

export interface Exposure {
  readonly vmId: string;
  /** IPv4 text, from the pool. */
  readonly address: string;
  readonly ports: readonly FrontPort[];
  /** Where the guest's port is reached; null: nowhere. */
  readonly endpointOf: (guestPort: number) => GuestEndpoint | null;
  /** Told once for each run when the guest first sent a byte on any port. */
  readonly onSignOfLife: () => void;
}

export interface FrontTraffic {
  /** Towards the guest, bytes since open(). */
  readonly inBytes: number;
  readonly outBytes: number;
  /** Open now, those that wait for the guest included. */
  readonly connections: number;
}

/** Ports that could not be opened, and why; the others answer. */
export interface RefusedPort {
  readonly port: number;
  readonly reason: string;
}

export interface Front {
  /**
   * Makes the address answer, from now until close(vmId). While the guest is not reachable a connection is
   * accepted and ended at once with nothing sent (for HTTP ports: a 503 that says the machine is not
   * running). With a guest, a connection is given to it only when the guest itself answers there.
   */
  open(exposure: Exposure): Promise<readonly RefusedPort[]>;
  /** Whether a guest is behind the address now. Connections of the run before are ended. */
  setRunning(vmId: string, running: boolean): void;
  traffic(vmId: string): FrontTraffic | null;
  /** The address answers no more; connections are ended. Missing is no error. */
  close(vmId: string): Promise<void>;
  closeAll(): Promise<void>;
}
