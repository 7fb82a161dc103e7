/**
 * The ingress port: the address under which a machine is reached. It comes from the cloud's own
 * pool and stays the same for as long as the machine exists; its guest may change. An address
 * without a guest uses no resources and refuses connections.
 */
import type { Socket } from 'node:net';
import type { GuestEndpoint } from './hypervisor.ts';

export interface IngressPort {
  /** Port of the address, as clients see it. */
  readonly port: number;
  readonly guestPort: number;
}

export interface PortState extends IngressPort {
  /** Why the port is closed, for the machine's owner; null: it is open. */
  readonly reason: string | null;
}

export interface Exposure {
  readonly vmId: string;
  /** IPv4 text, from the pool. */
  readonly address: string;
  /** The guest's TCP ports to expose. */
  readonly guestPorts: readonly number[];
  /** Endpoint of a guest's port; null: none. */
  readonly endpointOf: (guestPort: number) => GuestEndpoint | null;
  /** Called once for each run, when the guest first sent a byte on any port. */
  readonly onSignOfLife: () => void;
}

export interface IngressTraffic {
  /** Bytes to the guest since open(). */
  readonly inBytes: number;
  readonly outBytes: number;
  /** Open connections, including those that wait for the guest. */
  readonly connections: number;
}

export interface Ingress {
  /**
   * Reserves the block of addresses that begins at `base` for this cloud until closeAll(), where the host
   * supports it. False: another cloud on this host has it.
   */
  claim(base: string): Promise<boolean>;
  /**
   * Whether the address can be assigned to a machine: this host has it, and no other program
   * listens on it at one of these ports. A program that listens on a port of all addresses closes
   * that port, not the address.
   */
  isFree(address: string, guestPorts: readonly number[]): Promise<boolean>;
  /**
   * Opens every available port for a new run. For an open machine, retries the ports that stayed closed.
   * Resolves with the ports that are newly closed or closed for another reason.
   */
  open(exposure: Exposure): Promise<readonly PortState[]>;
  /** The guest of an open machine runs. A connection is accepted only when the guest itself answers. */
  begin(vmId: string): void;
  /**
   * A connection to a port of an open machine's guest, at the endpoint from the engine. On port 22
   * the guest has sent a byte. It is closed with the machine. null: the machine is not open,
   * nothing listens, or SSH does not respond in time.
   */
  dial(vmId: string, guestPort: number, endpoint: GuestEndpoint): Promise<Socket | null>;
  /** State of each port; ports of a machine that is not exposed are closed. */
  ports(vmId: string, guestPorts: readonly number[]): readonly PortState[];
  /** null: the machine is not open, or traffic is not counted. */
  traffic(vmId: string): IngressTraffic | null;
  /** Closes the address and its connections. No error if missing. */
  close(vmId: string): Promise<void>;
  closeAll(): Promise<void>;
}

export const NOT_RUNNING = 'the virtual machine is not running';
