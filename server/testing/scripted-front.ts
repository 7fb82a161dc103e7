/** Addresses that only remember what they were told. For tests of the domain only. */
import type { Exposure, Front, FrontTraffic, RefusedPort } from '../compute/front.ts';

interface Place {
  readonly exposure: Exposure;
  isRunning: boolean;
}

export class ScriptedFront implements Front {
  readonly places = new Map<string, Place>();
  refused: readonly RefusedPort[] = [];

  async open(exposure: Exposure): Promise<readonly RefusedPort[]> {
    const other = [...this.places.values()].find((place) => place.exposure.address === exposure.address);
    if (other !== undefined && other.exposure.vmId !== exposure.vmId) {
      throw new Error(`${exposure.address} answers for ${other.exposure.vmId} already`);
    }
    this.places.set(exposure.vmId, { exposure, isRunning: false });
    return this.refused;
  }

  setRunning(vmId: string, running: boolean): void {
    const place = this.places.get(vmId);
    if (place !== undefined) place.isRunning = running;
  }

  traffic(): FrontTraffic | null {
    return null;
  }

  async close(vmId: string): Promise<void> {
    this.places.delete(vmId);
  }

  async closeAll(): Promise<void> {
    this.places.clear();
  }
}
