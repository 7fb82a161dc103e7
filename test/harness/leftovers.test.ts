import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from './waiting.ts';

const MODULE = fileURLToPath(new URL('./leftovers.ts', import.meta.url));
const skip = existsSync('/proc/self/cwd') ? false : 'needs /proc';

/** A server and, in its data directory, a guest; neither ends by itself. */
class Fixture {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-leftovers-'));
  readonly inside = join(this.dataDir, 'vms/guest');
  readonly server: ChildProcess;
  readonly guest: ChildProcess;

  constructor() {
    mkdirSync(this.inside, { recursive: true });
    const asleep = { detached: true, stdio: 'ignore' } as const;
    this.server = spawn('sleep', ['600'], asleep);
    this.guest = spawn('sleep', ['600'], { ...asleep, cwd: this.inside });
  }

  get areGone(): boolean {
    return [this.server, this.guest].every(({ signalCode }) => signalCode === 'SIGKILL');
  }

  /** A test run that records the server, reports it, and then does `rest`. */
  async run(rest: string): Promise<ChildProcess> {
    const script = `import { noteStarted } from ${JSON.stringify(MODULE)};
      noteStarted(${this.server.pid}, ${JSON.stringify(this.dataDir)}, true);
      process.stdout.write('noted'); ${rest}`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'data');
    return child;
  }

  async gone(): Promise<void> {
    await eventually('nothing is left behind', () => this.areGone);
    assert.equal(existsSync(this.dataDir), false);
  }

  remove(): void {
    for (const child of [this.server, this.guest]) child.kill('SIGKILL');
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

const WAIT = 'setInterval(() => {}, 1000);';

test('a run that ends, fails or is told to end leaves nothing behind', { skip }, async (t) => {
  for (const [rest, signal] of [
    ['', null],
    ['throw new Error("on purpose");', null],
    [WAIT, 'SIGTERM'],
    [WAIT, 'SIGINT'],
  ] as const) {
    const fixture = new Fixture();
    t.after(() => fixture.remove());
    const run = await fixture.run(rest);
    const over = run.exitCode === null && run.signalCode === null ? once(run, 'exit') : undefined;
    if (signal !== null) run.kill(signal);
    await over;
    await fixture.gone();
  }
});

test('after a run that was killed the next one cleans up, and leaves alone what lives', {
  skip,
}, async (t) => {
  const [dead, alive, next] = [new Fixture(), new Fixture(), new Fixture()];
  for (const fixture of [dead, alive, next]) t.after(() => fixture.remove());
  const killed = await dead.run(WAIT);
  const living = await alive.run(WAIT);
  t.after(() => living.kill('SIGKILL'));
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  assert.equal(dead.areGone, false);
  // Its directory is removed with it, as that of an interrupted test: processes in it are found all the same.
  rmSync(dead.dataDir, { recursive: true });
  assert.match(readlinkSync(`/proc/${dead.guest.pid}/cwd`), /deleted/);
  await once(await next.run(''), 'exit');
  await dead.gone();
  await next.gone();
  assert.equal(alive.areGone, false);
});
