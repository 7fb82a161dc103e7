/**
 * Many test files in this one process, one after the other, each as a suite of its own name; for test-run.ts.
 * A file fails if it leaves something behind that would keep its own process from ending, or that changes the
 * state for the next file.
 *
 * Needs TEST_FILES, the absolute paths as JSON, and TEST_NOTE, a file that always tells the number of this
 * process and the file that runs: events of a process that dies may never arrive.
 */
import { writeFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../server/platform/host/host-facts.ts';

/** A connection being closed, or a killed child, needs a moment. */
const SETTLE_MS = 1000;
const LOOK_MS = 10;

/** Two suites for each file: a hook of the outer one runs even if a hook of the file fails. */
function runFile(file: string): Promise<void> {
  writeFileSync(process.env.TEST_NOTE ?? '', `${process.pid} ${file}`);
  const before = new Surroundings();
  return new Promise((resolve) => {
    describe(file, () => {
      after(async () => {
        try {
          await before.demandBack();
        } finally {
          resolve();
        }
      });
      describe(file, async () => {
        try {
          await import(file);
        } catch (error) {
          test('is loaded', () => {
            throw error;
          });
        }
      });
    });
  });
}

/** Process-wide state, which a file must leave unchanged. */
class Surroundings {
  readonly #directory = process.cwd();
  readonly #environment = JSON.stringify(Object.entries(process.env).sort());
  readonly #open = openResources();

  async demandBack(): Promise<void> {
    const startMs = performance.now();
    while (this.#leftOpen().length > 0 && performance.now() - startMs < patienceMs(SETTLE_MS))
      await sleep(LOOK_MS);
    const left = this.#leftOpen();
    const changed = [
      ...(left.length > 0 ? [`leaves open: ${left.join(', ')}`] : []),
      ...(process.cwd() !== this.#directory ? ['leaves the working directory changed'] : []),
      ...(JSON.stringify(Object.entries(process.env).sort()) !== this.#environment
        ? ['leaves the environment changed']
        : []),
    ];
    process.chdir(this.#directory);
    if (changed.length === 0) return;
    throw new Error(`this file ${changed.join(', and ')}. End it, or say \`A process of its own: …\` there`);
  }

  #leftOpen(): string[] {
    const now = [...openResources()];
    return now.filter(([kind, count]) => count > (this.#open.get(kind) ?? 0)).map(([kind]) => kind);
  }
}

/** These end by themselves: an unused connection with its server or after a while. */
const PASSING = /Socket|^(?:Pipe|TLS)Wrap$|ReqWrap$|^Immediate$/;

/** Number of each kind that keeps this process from ending. */
function openResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo())
    if (!PASSING.test(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

// A test may wait for something that does not keep a process alive.
const alive = setInterval(() => {}, 60_000);
for (const file of JSON.parse(process.env.TEST_FILES ?? '[]') as string[]) {
  await runFile(file);
  // Its results leave this process before the next file can end it.
  await sleep(1);
}
clearInterval(alive);
// Leftovers of a file are reported, and must not hide the others' results.
setTimeout(() => process.exit(), SETTLE_MS).unref();
