/** Addresses that only remember what they were told. For tests of the domain only. */
import {
  type Exposure,
  type Ingress,
  type IngressTraffic,
  NOT_RUNNING,
  type PortState,
} from '../compute/ingress.ts';

interface Place {
  readonly exposure: Exposure;
  isRunning: boolean;
}

export class ScriptedIngress implements Ingress {
  readonly places = new Map<string, Place>();
  /** Ports that stay closed, by their number, and why. */
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
    const other = [...this.places.values()].find((place) => place.exposure.address === address);
    if (other !== undefined && other.exposure.vmId !== vmId) {
      throw new Error(`${address} answers for ${other.exposure.vmId} already`);
    }
    if (this.places.has(vmId)) return [];
    this.places.set(vmId, { exposure, isRunning: false });
    return this.ports(vmId, guestPorts).filter(({ reason }) => reason !== null);
  }

  begin(vmId: string): void {
    const place = this.places.get(vmId);
    if (place !== undefined) place.isRunning = true;
  }

  ports(vmId: string, guestPorts: readonly number[]): readonly PortState[] {
    const isOpen = this.places.has(vmId);
    return guestPorts.map((port) => {
      const reason = isOpen ? (this.closed.get(port) ?? null) : NOT_RUNNING;
      return { port, guestPort: port, reason };
    });
  }

  traffic(): IngressTraffic | null {
    return null;
  }

  async close(vmId: string): Promise<void> {
    this.places.delete(vmId);
  }

  async closeAll(): Promise<void> {
    this.places.clear();
  }
}
