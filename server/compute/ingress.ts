/**
 * What compute needs of the place where a machine's address answers. The address is ours, from our own
 * pool, and the same for as long as the machine exists; the guest behind it comes and goes. An address
 * without a guest costs nothing and refuses connections.
 */
import type { GuestEndpoint } from './hypervisor.ts';

export interface IngressPort {
  /** As the caller of the address sees it. */
  readonly port: number;
  readonly guestPort: number;
}

export interface PortState extends IngressPort {
  /** Why it does not answer, for the machine's owner; null: it does. */
  readonly reason: string | null;
}

export interface Exposure {
  readonly vmId: string;
  /** IPv4 text, from the pool. */
  readonly address: string;
  /** The guest's TCP ports that are to answer. */
  readonly guestPorts: readonly number[];
  /** Where the guest's port is reached; null: nowhere. */
  readonly endpointOf: (guestPort: number) => GuestEndpoint | null;
  /** Told once for each run when the guest first sent a byte on any port. */
  readonly onSignOfLife: () => void;
}

export interface IngressTraffic {
  /** Towards the guest, bytes since open(). */
  readonly inBytes: number;
  readonly outBytes: number;
  /** Open now, those that wait for the guest included. */
  readonly connections: number;
}

export interface Ingress {
  /**
   * Keeps the block of addresses that begins with `base` for this cloud, until closeAll(), where the host
   * can. False: another cloud on this host has it.
   */
  claim(base: string): Promise<boolean>;
  /**
   * Whether the address could be a machine's: this host has it, and no other program listens at it on one of
   * these ports. One that listens at every address of the host on a port closes that port, no address.
   */
  isFree(address: string, guestPorts: readonly number[]): Promise<boolean>;
  /**
   * Opens every port that can be had, for a run that begins. For a machine that is open it tries again those
   * that stayed closed. Resolves with the ports that stay closed and did not before for the same reason.
   */
  open(exposure: Exposure): Promise<readonly PortState[]>;
  /** The guest of an open machine runs. A connection is given to it only when the guest itself answers. */
  begin(vmId: string): void;
  /** Each port, open or not; those of a machine that is not open are closed. */
  ports(vmId: string, guestPorts: readonly number[]): readonly PortState[];
  /** null: the machine is not open, or nobody counts. */
  traffic(vmId: string): IngressTraffic | null;
  /** The address answers no more; connections are ended. Missing is no error. */
  close(vmId: string): Promise<void>;
  closeAll(): Promise<void>;
}

export const NOT_RUNNING = 'the machine does not run';
