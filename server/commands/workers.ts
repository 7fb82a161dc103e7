/**
 * Front nodes on the same host, to use its other cores: each is a separate process that shares the
 * ports of the API and of the data origin, and is restarted when it ends. The parent process is a
 * node of the same cluster, and the one that may have machines and databases.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Config, inheritedEnvironment } from '../config/config.ts';
import { systemClock } from '../platform/clock.ts';
import { StartupError } from '../platform/data-directory.ts';

const LEAST_WAIT_MS = 1000;
const MOST_WAIT_MS = 30_000;

/** Runs CLOUDLET_WORKERS front nodes until it is stopped. */
export class Workers {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #children = new Set<ChildProcess>();
  readonly #end = new AbortController();
  readonly #runs: Promise<void>[] = [];

  constructor(config: Config, log: Logger) {
    this.#config = config;
    this.#log = log;
  }

  start(): void {
    for (let i = 1; i <= this.#config.workers; i++) this.#runs.push(this.#keep(i));
  }

  /** Ends the workers after their node has left; resolves when all have ended. */
  async stop(): Promise<void> {
    this.#end.abort();
    for (const child of this.#children) child.kill('SIGTERM');
    await Promise.all(this.#runs);
  }

  async #keep(number: number): Promise<void> {
    for (let wait = LEAST_WAIT_MS; !this.#end.signal.aborted; wait = Math.min(2 * wait, MOST_WAIT_MS)) {
      const began = systemClock.monotonic();
      const code = await this.#run(number);
      if (this.#end.signal.aborted) return;
      this.#log.warn({ worker: number, code }, 'a worker has ended and is started again');
      if (systemClock.monotonic() - began > MOST_WAIT_MS) wait = LEAST_WAIT_MS;
      await sleep(wait, undefined, { signal: this.#end.signal }).catch(() => {});
    }
  }

  async #run(number: number): Promise<number | null> {
    const { dataDir, nodeName } = this.#config;
    const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', 'start', '--worker'], {
      env: {
        ...inheritedEnvironment(),
        CLOUDLET_DATA_DIR: join(dataDir, 'workers', String(number)),
        CLOUDLET_MASTER_KEY_FILE: join(dataDir, 'master.key'),
        CLOUDLET_NODE_NAME: `${nodeName || hostname()}-worker-${number}`,
        CLOUDLET_PORT: String(this.#config.port),
        CLOUDLET_COMPUTE: 'off',
        CLOUDLET_WORKERS: '0',
      },
      // Closed when this process ends, however it ends: see parentEnded().
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    this.#children.add(child);
    const [code] = await once(child, 'exit').catch((error: unknown) => {
      this.#log.error({ worker: number, err: error }, 'a worker could not be started');
      return [null];
    });
    this.#children.delete(child);
    return code as number | null;
  }
}

/** In a worker: resolves when its parent process has ended, even if killed. */
export async function parentEnded(): Promise<void> {
  const ended = once(process.stdin.resume(), 'end');
  // A stopped worker must not wait for its parent.
  process.stdin.unref();
  await ended;
}

/**
 * Accepts connections on the port of CLOUDLET_NODE_URL for `server`: forwarded requests must reach
 * this process, while CLOUDLET_PORT may reach any worker. Rejects with a StartupError.
 */
export async function listenForNodes({ host, nodeUrl }: Config, server: Server): Promise<Server> {
  const { port } = new URL(nodeUrl);
  const nodes = createServer((socket) => server.emit('connection', socket));
  nodes.listen({ host, port: Number(port) });
  try {
    await once(nodes, 'listening');
  } catch (error) {
    throw new StartupError(
      `Port ${port} of CLOUDLET_NODE_URL cannot be used on ${host} (${(error as NodeJS.ErrnoException).code}): ` +
        'stop the program that uses it, or set CLOUDLET_NODE_URL',
      error,
    );
  }
  return nodes;
}
