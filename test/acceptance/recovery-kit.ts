/** Shared by the tests of recovery. */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { type Ended, runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';

export const POINTS = '/api/disaster-recovery/points';
export const POST = { method: 'POST' };

type Env = Readonly<Record<string, string>>;

/**
 * Delays a point in progress: the data of an image only arrives once it is written. Resolves when the point
 * waits, with the function that releases it: call it in t.after() too, otherwise the cloud would not end.
 */
export async function holdUp(dataDir: string, begin: () => Promise<unknown>): Promise<() => void> {
  const gate = join(dataDir, 'images', 'gate');
  mkdirSync(join(dataDir, 'images'), { recursive: true });
  execFileSync('mkfifo', [gate]);
  await begin();
  const fd = await eventually('the point is held up', () => {
    try {
      return openSync(gate, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
  });
  let isHeld = true;
  return () => {
    if (isHeld) rmSync(gate);
    if (isHeld) closeSync(fd);
    isHeld = false;
  };
}

/** A cloud with a recovery target outside it, to be lost and restored. */
export class LosableCloud {
  readonly root = mkdtempSync(join(tmpdir(), 'cloudlet-recovery-'));
  readonly target = join(this.root, 'target');
  readonly keyFile = join(this.root, 'key');
  readonly #env: Env;
  cloud!: CloudProcess;
  admin!: CheckedClient;
  user!: CheckedClient;
  #restored = 0;
  #restoreEnv: Env = {};

  private constructor(env: Env) {
    this.#env = { CLOUDLET_RECOVERY_TARGET: this.target, ...env };
  }

  /** With one user. The schedule creates no recovery point, unless it is the default one. */
  static async start(env: Env = {}, schedule: 'off' | 'default' = 'off'): Promise<LosableCloud> {
    const made = new LosableCloud(env);
    await made.#start(join(made.root, 'data'));
    const off = { method: 'PATCH', json: { every: 'off' } };
    if (schedule === 'off') await made.admin.expect(200, '/api/disaster-recovery/schedule', off);
    const anyone = await CheckedClient.open(made.cloud.api);
    made.user = anyone.as((await anyone.register()).api_key);
    return made;
  }

  get dataDir(): string {
    return this.cloud.dataDir;
  }

  /** A complete point. */
  async point() {
    return this.admin.expect(201, `${POINTS}?wait=120`, POST);
  }

  async keepKey(): Promise<void> {
    const { recovery_key: key } = await this.admin.expect(200, '/api/admin/recovery-key', POST);
    writeFileSync(this.keyFile, key);
  }

  restore(to: string, ...more: readonly string[]): Promise<Ended> {
    const args = ['recovery', 'restore', '--from', this.target, '--to', to, '--key-file', this.keyFile];
    return runCloudlet([...args, ...more], { env: this.#restoreEnv, timeoutMs: 900_000 });
  }

  /** Restarts it, on the same directory, with these settings too. */
  async startAgain(env: Env = {}): Promise<void> {
    await this.cloud.end();
    await this.#start(this.dataDir, env);
  }

  /**
   * Kills it, removes all its data, and continues with the restore of a point, by default the newest. `env`:
   * for the restore and for the cloud from then on.
   */
  async lose(point = 'latest', env: Env = {}): Promise<Ended> {
    await this.cloud.crash();
    rmSync(this.dataDir, { recursive: true });
    this.#restoreEnv = env;
    const to = join(this.root, `again-${++this.#restored}`);
    const restored = await this.restore(to, '--point', point);
    if (restored.code !== 0) throw new Error(`${restored.stdout}${restored.stderr}`);
    await this.#start(to, env);
    return restored;
  }

  /** Ends it, and continues with the directory restored there. */
  async goOn(to: string): Promise<void> {
    await this.cloud.end();
    await this.#start(to);
  }

  async end(): Promise<void> {
    await this.cloud.end();
    rmSync(this.root, { recursive: true, force: true });
  }

  async #start(dataDir: string, env: Env = {}): Promise<void> {
    this.cloud = await CloudProcess.start({ dataDir, env: { ...this.#env, ...env } });
    this.admin = await CheckedClient.open(this.cloud.api, ADMIN_KEY);
    if (this.user !== undefined) this.user = this.admin.as(this.user.key);
  }
}
