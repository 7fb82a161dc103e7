/** Consoles of an engine controlled by the test, which plays the guest's side. */
import type { GuestConsole, Hypervisor } from '../compute/hypervisor.ts';

class ScriptedConsole implements GuestConsole {
  readonly written: string[] = [];
  /** Until it resolves the guest accepts no input. */
  takes: Promise<void> = Promise.resolve();
  isReleased = false;
  #onData: (bytes: Uint8Array) => void = () => {};
  #onClose: () => void = () => {};

  async write(bytes: Uint8Array): Promise<void> {
    await this.takes;
    this.written.push(Buffer.from(bytes).toString('utf8'));
  }

  onData(listener: (bytes: Uint8Array) => void): void {
    this.#onData = listener;
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  close(): void {
    this.isReleased = true;
  }

  /** The guest writes to its serial port. */
  say(text: string | Uint8Array): void {
    this.#onData(Buffer.from(text as string));
  }

  /** The guest stops. */
  stop(): void {
    this.#onClose();
  }
}

export class ScriptedConsoles implements Pick<Hypervisor, 'capabilities' | 'openConsole' | 'consoleLog'> {
  readonly capabilities = { guestStatistics: false, console: true, survivesRestart: true, filesToStart: 48 };
  /** Guests that run. */
  readonly running = new Set<string>();
  readonly opened: ScriptedConsole[] = [];
  log = Buffer.alloc(0);
  /** Until it resolves no log is returned. */
  logComes: Promise<void> = Promise.resolve();

  get latest(): ScriptedConsole {
    const latest = this.opened.at(-1);
    if (!latest) throw new Error('no console was opened');
    return latest;
  }

  async openConsole(vmId: string): Promise<GuestConsole | null> {
    if (!this.running.has(vmId)) return null;
    const opened = new ScriptedConsole();
    this.opened.push(opened);
    return opened;
  }

  async consoleLog(_vmId: string, maxBytes: number): Promise<Uint8Array> {
    await this.logComes;
    return maxBytes === 0 ? Buffer.alloc(0) : this.log.subarray(-maxBytes);
  }
}
