/** A recovery point and a restore compared with copies of the same files, and with restic if available. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '../../test/harness/client.ts';
import { ADMIN_KEY } from '../../test/harness/cloud-process.ts';
import { runCloudlet } from '../../test/harness/command.ts';
import { runProgram } from '../child.ts';
import { type Comparison, compare } from '../ratios.ts';
import { skippedRow } from '../table.ts';
import {
  bodyOf,
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';

const ROOT = '/api/disaster-recovery';
const SMALL = 64 * 1024;
const LARGE = 4 * 2 ** 20;
const AT_ONCE = 8;

/** A quarter of the bytes in small objects, the rest in large ones; all incompressible. */
async function fill(client: Client, totalBytes: number): Promise<void> {
  const sizes = [
    ...Array.from({ length: totalBytes / 4 / SMALL }, () => SMALL),
    ...Array.from({ length: ((totalBytes / 4) * 3) / LARGE }, () => LARGE),
  ];
  let next = 0;
  const upload = async () => {
    for (let at = next++; at < sizes.length; at = next++) {
      await client.upload('bench', `object-${at}`, randomBytes(sizes[at] as number));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, upload));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function call(
  admin: Client,
  path: string,
): Promise<{ state: string; stored_bytes: number; size_bytes: number }> {
  return bodyOf(admin, `${ROOT}/${path}`, { method: 'POST' });
}

async function point(admin: Client) {
  const made = await call(admin, 'points?wait=600');
  if (made.state !== 'complete') throw new Error(`a recovery point is ${JSON.stringify(made)}`);
  return made;
}

/** All files of the cloud except the points: the files that a copy would need. */
async function copy(dataDir: string, to: string): Promise<void> {
  mkdirSync(to);
  const names = readdirSync(dataDir).filter(
    (name) => !['recovery', 'reserve', 'control.sock'].includes(name),
  );
  await runProgram('cp', ['-a', ...names.map((name) => join(dataDir, name)), to]);
  await runProgram('sync', ['-f', to]);
}

async function restic(dataDir: string, to: string): Promise<void> {
  const env = { RESTIC_PASSWORD: 'bench', RESTIC_REPOSITORY: to };
  const run = (...words: string[]) => runProgram('restic', ['--no-cache', '-q', ...words], env);
  await run('init');
  await run('backup', '--exclude', join(dataDir, 'recovery'), dataDir);
  await runProgram('sync', ['-f', to]);
}

interface Times {
  readonly copies: number[];
  readonly restics: number[];
  readonly points: number[];
  readonly seconds: number[];
  readonly restores: number[];
  readonly shares: number[];
}

async function round(
  cloud: Cloud,
  options: RunOptions & { readonly total: number },
  times: Times,
): Promise<void> {
  const { folder, total } = options;
  const { dataDir, api } = cloud.process;
  const admin = new Client(api, ADMIN_KEY);
  const [copied, repository, restored] = ['copied', 'restic', 'restored'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  // Nothing here may block this process for seconds: idle connections would end unnoticed.
  await rm(join(dataDir, 'recovery'), { recursive: true, force: true });
  await call(admin, 'check');
  times.copies.push(await timed(() => copy(dataDir, copied)));
  if (hasRestic()) times.restics.push(await timed(() => restic(dataDir, repository)));
  let first = { stored_bytes: 0 };
  times.points.push(
    await timed(async () => {
      first = await point(admin);
    }),
  );
  const keyFile = join(folder, 'key');
  const { body } = await admin.call('/api/admin/recovery-key', { method: 'POST' });
  writeFileSync(keyFile, body.recovery_key);
  const words = ['--from', join(dataDir, 'recovery'), '--to', restored, '--key-file', keyFile];
  times.restores.push(
    await timed(async () => {
      const ended = await runCloudlet(['recovery', 'restore', ...words], { env: {}, timeoutMs: 3_600_000 });
      if (ended.code !== 0) throw new Error(`a restore failed: ${ended.stderr}`);
    }),
  );
  const changed = Math.max(1, Math.round(total / 100 / LARGE));
  for (let at = 0; at < changed; at++) await cloud.client.upload('bench', `object-${at}`, randomBytes(LARGE));
  let second = { stored_bytes: 0 };
  times.seconds.push(
    await timed(async () => {
      second = await point(admin);
    }),
  );
  times.shares.push(second.stored_bytes / first.stored_bytes);
  for (const path of [copied, repository, restored]) await rm(path, { recursive: true, force: true });
}

const hasRestic = () => spawnSync('restic', ['version']).status === 0;

/** Speed relative to the yardstick: for times, the inverse ratio. */
function speedRow(work: string, atLeast: number, comparison: Comparison): Row {
  const { ratio, yardstick: ours, ours: yardstick, lowest, highest, rounds } = comparison;
  return {
    work,
    target: `≥ ${atLeast.toFixed(1)} ×`,
    reached: `**${ratio.toFixed(2)} ×**`,
    isMet: ratio >= atLeast,
    detail:
      `${(ours / 1000).toFixed(2)} s against ${(yardstick / 1000).toFixed(2)} s; ` +
      `${lowest.toFixed(2)} to ${highest.toFixed(2)} in ${rounds} rounds`,
  };
}

function recovery(options: RunOptions): Promise<Row[]> {
  const total = options.quick ? 256 * 2 ** 20 : 4 * 2 ** 30;
  const rounds = options.rounds ?? (options.quick ? 3 : 5);
  const size = `${total / 2 ** 20} MiB`;
  return withCloud(options, async (cloud) => {
    await createBucket(cloud.client, { name: 'bench' });
    await fill(cloud.client, total);
    const times: Times = { copies: [], restics: [], points: [], seconds: [], restores: [], shares: [] };
    for (let count = 0; count < rounds; count++) await round(cloud, { ...options, total }, times);
    const second = compare(times.points, times.seconds);
    const share = Math.max(...times.shares) * 100;
    const resticWork = 'the same, against restic backup';
    return [
      speedRow(
        `recovery point of ${size} in objects, against cp and sync`,
        0.6,
        compare(times.points, times.copies),
      ),
      hasRestic()
        ? speedRow(resticWork, 1, compare(times.points, times.restics))
        : skippedRow(resticWork, '≥ 1.0 ×', 'restic is not installed'),
      speedRow('its restore, against cp and sync', 0.5, compare(times.restores, times.copies)),
      {
        work: 'the next point after 1 % was changed: time of the first',
        target: '≤ 0.10 ×',
        reached: `**${second.ratio.toFixed(2)} ×**`,
        isMet: second.ratio <= 0.1,
        detail: `${second.ours.toFixed(0)} ms; ${share.toFixed(1)} % of the bytes at most, at most 5 wanted`,
      },
    ];
  });
}

export const RECOVERY: readonly Measurement[] = [{ name: 'recovery', run: recovery }];
