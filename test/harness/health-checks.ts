/** A proxy's health checks of nodes, and reads that it sends to ready nodes. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from './cloud-process.ts';

const READERS = 4;

/** The nodes for requests, as found by a proxy at /readyz each second. */
export class HealthChecks {
  readonly #ready: Set<CloudProcess>;
  readonly #timer: NodeJS.Timeout;
  #turn = 0;
  #isClosed = false;

  constructor(nodes: readonly CloudProcess[]) {
    this.#ready = new Set(nodes);
    this.#timer = setInterval(() => {
      for (const node of nodes) void this.#check(node);
    }, 1000);
  }

  next(): CloudProcess {
    const ready = [...this.#ready];
    assert.ok(ready.length > 0, 'no node is ready');
    return ready[this.#turn++ % ready.length] as CloudProcess;
  }

  /** Reads the path repeatedly as an administrator, until end(). */
  read(path: string) {
    let isOver = false;
    let answers = 0;
    const failed: string[] = [];
    const readers = Array.from({ length: READERS }, async () => {
      while (!isOver && !this.#isClosed) {
        const node = this.next();
        const status = await fetch(`${node.api}${path}`, { headers: { 'x-api-key': ADMIN_KEY } }).then(
          (response) => response.arrayBuffer().then(() => response.status),
          (error: Error) => String(error.cause ?? error),
        );
        answers++;
        if (status !== 200) failed.push(`${status} of ${node.api}`);
        await sleep(5);
      }
    });
    const end = async () => {
      isOver = true;
      await Promise.all(readers);
      return { answers, failed };
    };
    return { end };
  }

  async isReady(node: CloudProcess): Promise<void> {
    while (!this.#ready.has(node)) await sleep(100);
  }

  /** Ends the reads, too. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  async #check(node: CloudProcess): Promise<void> {
    const isReady = await fetch(`${node.api}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (isReady) this.#ready.add(node);
    else this.#ready.delete(node);
  }
}
