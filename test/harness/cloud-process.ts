/** A real Cloudlet in its own process, for tests that use it over HTTP only. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { patienceMs } from '../../server/platform/host/host-facts.ts';
import {
  noGuestUsers,
  noOtherReaders,
  testDatabaseUidBase,
  testPool,
  testUidBase,
} from '../../server/testing/own-ground.ts';
import { blobsEnv } from './blob-bucket.ts';
import { noteStarted } from './leftovers.ts';
import { dropMetadata, metadataEnv } from './metadata-database.ts';
import { StartProgress } from './start-progress.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** `TEST_LAUNCHER`: that of an installed package, under the same tests. */
const LAUNCHER = process.env.TEST_LAUNCHER ?? join(ROOT, 'bin/cloudlet');
/** Longer than any orderly stop on an idle host; a test that waits forever reports nothing. */
const END_MS = 120_000;

/** The addresses for machines of this test process: a network of four times 256. */
export const POOL = testPool();

/** Why tests and their clouds cannot run programs as other users here, or false. */
export const NO_OTHER_USERS: string | false = noGuestUsers;
/** Why no other user can run Cloudlet from this clone; false: it can. */
export const NO_OTHER_READERS: string | false = noOtherReaders;

const FIRST_PORT = 10_000 + (process.pid % 900) * 10;
/** The resources that a cloud must not share to run beside others. */
export const OWN_GROUND = {
  CLOUDLET_VM_POOL: POOL,
  CLOUDLET_VM_UID_BASE: String(testUidBase()),
  CLOUDLET_DATABASE_UID_BASE: String(testDatabaseUidBase()),
  // A server that a test kills must find its port free again.
  CLOUDLET_POSTGRESQL_PORT: String(FIRST_PORT),
  CLOUDLET_MYSQL_PORT: String(FIRST_PORT + 3),
  CLOUDLET_MONGODB_PORT: String(FIRST_PORT + 6),
};

/** An administrator's key that every test cloud accepts. */
export const ADMIN_KEY = 'test-administrator-key-0123456789';

export interface CloudOptions {
  /** Kept if given; otherwise a temporary one that stop() removes. */
  readonly dataDir?: string;
  /** Additional CLOUDLET_ settings; undefined removes one that every test cloud has. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Prefix of the launcher, e.g. strace and its arguments. */
  readonly wrapper?: readonly string[];
  /** Instead of `bin/cloudlet start`; run in the root of the project. */
  readonly command?: readonly string[];
}

export class CloudProcess {
  readonly dataDir: string;
  readonly #options: CloudOptions;
  #child: ChildProcess | undefined;
  #output = '';
  api = '';
  data = '';

  private constructor(options: CloudOptions, dataDir = options.dataDir) {
    this.#options = options;
    this.dataDir = dataDir ?? mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  }

  /** Starts another program on the directory and settings of this one, after its end. */
  with(options: Pick<CloudOptions, 'command' | 'wrapper'>): Promise<CloudProcess> {
    const { command: _, ...own } = this.#options;
    const next = new CloudProcess({ ...own, ...options }, this.dataDir);
    return next.start().then(() => next);
  }

  /** Resolves when both ports answer. Rejects with the output when the start fails. */
  static async start(options: CloudOptions = {}): Promise<CloudProcess> {
    const cloud = new CloudProcess(options);
    await cloud.start();
    return cloud;
  }

  /** Starts (again) on the same data directory, on new free ports. */
  async start(): Promise<void> {
    const { wrapper = [], command: words = [LAUNCHER, 'start'] } = this.#options;
    const [command = LAUNCHER, ...args] = [...wrapper, ...words];
    const cwd = this.#options.command === undefined ? undefined : ROOT;
    const env = {
      PATH: process.env.PATH,
      CLOUDLET_DATA_DIR: this.dataDir,
      CLOUDLET_PORT: '0',
      CLOUDLET_DATA_PORT: '0',
      CLOUDLET_ADMIN_KEY: ADMIN_KEY,
      CLOUDLET_LOG_LEVEL: 'warn',
      // By default a cloud that others can reach allows no registrations.
      CLOUDLET_REGISTRATION: 'open',
      // The test boots of KVM's probe would cost every test seconds of processor time.
      CLOUDLET_VM_ACCEL: 'tcg',
      ...OWN_GROUND,
      ...(await metadataEnv(this.dataDir)),
      ...blobsEnv(this.dataDir),
      ...this.#options.env,
    };
    this.#output = '';
    const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#child = child;
    if (child.pid !== undefined) noteStarted(child.pid, this.dataDir, this.#options.dataDir === undefined);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    const progress = new StartProgress(child.pid ?? 0);
    while (!this.#output.includes('Ready in')) {
      const fault = child.exitCode === null ? progress.fault(this.#output.length) : `exit ${child.exitCode}`;
      if (fault !== undefined) {
        this.kill();
        throw new Error(`Cloudlet did not start (${fault}):\n${this.#output}`);
      }
      await sleep(10);
    }
    // A file whose test fails before its stop() must still end; leftovers.ts then ends the cloud.
    child.unref();
    for (const stream of [child.stdout, child.stderr]) (stream as Socket).unref();
    this.api = /API +(\S+)\/api$/m.exec(this.#output)?.[1] ?? '';
    this.data = /Data origin +(\S+)/.exec(this.#output)?.[1] ?? '';
  }

  /** Everything printed since the last start, both streams. */
  get output(): string {
    return this.#output;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** It was started, and no longer runs. */
  get hasEnded(): boolean {
    const child = this.#child;
    return child !== undefined && (child.exitCode !== null || child.signalCode !== null);
  }

  /** Sends SIGKILL to the process and its wrapper, immediately. */
  kill(): void {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    process.kill(-child.pid, 'SIGKILL');
  }

  /** Sends SIGKILL, and resolves when it is gone. */
  async crash(): Promise<void> {
    const child = this.#child;
    this.kill();
    if (child && child.exitCode === null && child.signalCode === null) {
      child.ref();
      await once(child, 'exit');
    }
  }

  /** Resolves with the exit code once it has ended by itself. */
  async ended(): Promise<number | null> {
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      child.ref();
      await once(child, 'exit');
    }
    return child?.exitCode ?? null;
  }

  /** SIGTERM; resolves with the exit code, once all of its output is there. */
  async end(): Promise<number | null> {
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const closed = once(child, 'close');
      child.ref();
      process.kill(-(child.pid as number), 'SIGTERM');
      const late = new AbortController();
      const patience = sleep(patienceMs(END_MS), 'late', { signal: late.signal }).catch(() => 'ended');
      const isLate = (await Promise.race([closed, patience])) === 'late';
      late.abort();
      if (isLate) {
        const state = child.exitCode === null ? 'still runs' : 'has left a program with its output';
        this.kill();
        throw new Error(
          `Cloudlet ${state} ${END_MS / 1000} s or more after SIGTERM:\n${this.#output.slice(-4000)}`,
        );
      }
    }
    return child?.exitCode ?? null;
  }

  /** Like end(), and removes a temporary data directory. */
  async stop(): Promise<number | null> {
    const status = await this.end();
    if (this.#options.dataDir === undefined) {
      // A guest that was just killed may still be writing.
      rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      await dropMetadata(this.dataDir);
    }
    return status;
  }
}
