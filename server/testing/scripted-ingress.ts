/** Addresses that only record their calls. For tests of the domain only. */
import {
  type Exposure,
  type Ingress,
  type IngressTraffic,
  NOT_RUNNING,
  type PortState,
} from '../compute/ingress.ts';

interface Entry {
  readonly exposure: Exposure;
  isRunning: boolean;
}

export class ScriptedIngress implements Ingress {
  readonly entries = new Map<string, Entry>();
  /** Ports that stay closed, by number, with the reason. */
  readonly closed = new Map<number, string>();
  /** Blocks of other clouds, and addresses where other programs answer. */
  readonly foreign = new Set<string>();

  async claim(base: string): Promise<boolean> {
    return !this.foreign.has(base);
  }

  async isFree(address: string): Promise<boolean> {
    return !this.foreign.has(address);
  }

  async open(exposure: Exposure): Promise<readonly PortState[]> {
    const { vmId, address, guestPorts } = exposure;
    const other = [...this.entries.values()].find((entry) => entry.exposure.address === address);
    if (other !== undefined && other.exposure.vmId !== vmId) {
      throw new Error(`${address} answers for ${other.exposure.vmId} already`);
    }
    if (this.entries.has(vmId)) return [];
    this.entries.set(vmId, { exposure, isRunning: false });
    return this.ports(vmId, guestPorts).filter(({ reason }) => reason !== null);
  }

  begin(vmId: string): void {
    const entry = this.entries.get(vmId);
    if (entry !== undefined) entry.isRunning = true;
  }

  ports(vmId: string, guestPorts: readonly number[]): readonly PortState[] {
    const isOpen = this.entries.has(vmId);
    return guestPorts.map((port) => {
      const reason = isOpen ? (this.closed.get(port) ?? null) : NOT_RUNNING;
      return { port, guestPort: port, reason };
    });
  }

  dial(): Promise<null> {
    return Promise.resolve(null);
  }

  traffic(): IngressTraffic | null {
    return null;
  }

  async close(vmId: string): Promise<void> {
    this.entries.delete(vmId);
  }

  async closeAll(): Promise<void> {
    this.entries.clear();
  }
}
