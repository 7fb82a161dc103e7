/** `cloudlet recovery`: points from which the whole cloud comes back, made here and restored anywhere. */

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { DirectoryTarget } from '../drivers/recovery-directory/directory-target.ts';
import { RestoreDirectory } from '../drivers/recovery-directory/restore-directory.ts';
import { readRecoveryKey } from '../recovery/recovery-key.ts';
import { type Restored, restoreFiles } from '../recovery/restore.ts';
import { RecoveryStore } from '../recovery/store.ts';
import { formatSize } from '../storage/format-size.ts';
import { Alarms } from '../system/alarms.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { askServer, asOperator } from './operator-call.ts';

const HELP = `Usage: cloudlet recovery create
       cloudlet recovery list
       cloudlet recovery key
       cloudlet recovery restore --from DIR --to EMPTY_DIR [--point ID|latest] [--key-file FILE] [--partial yes]

create   makes a recovery point of the whole cloud and waits for its end.
list     lists the points of this cloud.
key      shows the recovery key, and asks for it back. Without it a lost cloud cannot be restored.
restore  makes a data directory of a point. It needs the points and the recovery key, and no running cloud.
         --partial yes goes on without what is missing or damaged, and lists it.
`;

export const RECOVERY: Command = {
  help: HELP,
  options: ['from', 'to', 'point', 'key-file', 'partial'],
  run: async (config, words) => {
    const [verb, ...rest] = words.positionals;
    const work = verb === undefined || rest.length > 0 ? undefined : VERBS[verb];
    if (work === undefined)
      throw new UsageError('expected create, list, key or restore; see cloudlet recovery --help');
    return work(config, words);
  },
};

type Verb = (config: Config, words: Words) => Promise<number>;
const VERBS: Readonly<Record<string, Verb>> = { create, list, key, restore };

const POINTS = '/api/disaster-recovery/points';
const POLL_MS = 500;

interface Point {
  readonly point_id: string;
  readonly state: string;
  readonly state_reason: string | null;
  readonly percent: number;
  readonly created_at: string;
  readonly size_bytes: number;
  readonly stored_bytes: number;
  readonly target: string;
  readonly gaps: readonly { readonly component: string; readonly reason: string }[];
}

async function create(config: Config): Promise<number> {
  return askServer(config, async (call) => {
    let point = await call<Point>({ method: 'POST', path: POINTS });
    const bar = new Progress();
    while (point.state === 'creating') {
      bar.show(point.percent);
      await sleep(POLL_MS);
      point = await call<Point>({ method: 'GET', path: `${POINTS}/${point.point_id}` });
    }
    bar.end();
    const { point_id: id, size_bytes: size, stored_bytes: stored } = point;
    if (point.state !== 'complete') {
      console.log(`${id} is ${point.state}: ${point.state_reason ?? 'no reason is known'}`);
      return 1;
    }
    console.log(
      `${id} is complete: ${formatSize(size)}, ${formatSize(stored)} of it new, in ${point.target}`,
    );
    for (const { component, reason } of point.gaps) console.log(`not in it: ${component} (${reason})`);
    return 0;
  });
}

async function list(config: Config): Promise<number> {
  const points = await asOperator(config, (call) => call<Point[]>({ method: 'GET', path: POINTS }));
  for (const { point_id, created_at, state, size_bytes } of points) {
    console.log(`${point_id}  ${created_at}  ${state}  ${formatSize(size_bytes)}`);
  }
  if (points.length === 0)
    console.log('There is no recovery point yet: make one with cloudlet recovery create');
  return 0;
}

interface KeyAnswer {
  readonly recovery_key?: string;
  readonly taken: boolean;
}

async function key(config: Config): Promise<number> {
  const path = '/api/admin/recovery-key';
  const shown = await asOperator(config, (call) => call<KeyAnswer>({ method: 'POST', path }));
  console.log(`The recovery key opens every recovery point of this cloud:\n\n  ${shown.recovery_key}\n`);
  console.log(
    'Keep it where this machine is not: on paper, in a password manager. It is shown until you prove',
  );
  console.log('to have it, and never again.\n');
  const typed = await ask('Type or paste it here once you have kept it (or press Enter to do so later): ');
  if (typed === '') return 0;
  await asOperator(config, (call) =>
    call<KeyAnswer>({ method: 'POST', path: `${path}/confirm`, body: { recovery_key: typed } }),
  );
  console.log('That is it. This machine has forgotten it.');
  return 0;
}

async function restore(_config: Config, { values }: Words): Promise<number> {
  const { from, to, point = 'latest', partial } = values;
  if (from === undefined || to === undefined)
    throw new UsageError('restore needs --from and --to; see --help');
  if (partial !== undefined && partial !== 'yes')
    throw new UsageError('--partial takes yes, or leave it out');
  const directory = resolve(to);
  await RestoreDirectory.demandEmpty(directory);
  const recoveryKey = readRecoveryKey(await keyText(values['key-file']));
  let folder: RestoreDirectory | undefined;
  const bar = new Progress();
  const restored = await restoreFiles({
    target: new DirectoryTarget(resolve(from)),
    recoveryKey,
    pointId: point,
    folder: async (pointId) => {
      folder = await RestoreDirectory.open(directory, pointId);
      return folder;
    },
    clock: systemClock,
    isPartial: partial === 'yes',
    onProgress: ({ bytes, totalBytes }) => bar.show((bytes / Math.max(1, totalBytes)) * 100),
  });
  bar.end();
  if (folder === undefined) throw new Error('nothing was restored');
  await prepareFirstStart(folder.path);
  await folder.finish();
  tell(restored, directory);
  return restored.missing.length === 0 ? 0 : 1;
}

/** Brings the metadata to this program's schema, and to what must be so before the first start. */
async function prepareFirstStart(directory: string): Promise<void> {
  const metadata = await SqliteMetadata.open({
    directory,
    clock: systemClock,
    alarms: new Alarms(systemClock),
  });
  try {
    const dumps = await KeptDumpFiles.sizes(join(directory, 'databases', 'kept'));
    await metadata.commit(new RecoveryStore(metadata).afterRestore(systemClock.now(), dumps));
  } finally {
    await metadata.close();
  }
}

function tell({ manifest, missing }: Restored, directory: string): void {
  const { contents, cut_at, point_id } = manifest;
  const counts = Object.entries(contents).map(([what, count]) => `${count} ${what}`);
  console.log(`${point_id} of ${cut_at} UTC is restored in ${directory}: ${counts.join(', ')}`);
  for (const { component, reason } of manifest.gaps)
    console.log(`was not in the point: ${component} (${reason})`);
  for (const path of missing) console.log(`missing or damaged: ${path}`);
  console.log(`Start it: bin/cloudlet start --data-dir ${directory}`);
}

async function keyText(file: string | undefined): Promise<string> {
  if (file !== undefined) return readFileSync(file, 'utf8');
  const typed = await ask('The recovery key: ');
  if (typed === '') throw new Error('a recovery key is needed: type it, or name a file with --key-file');
  return typed;
}

/** Empty where there is nobody to answer. */
async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return (await Promise.race([lines.question(question), ended])).trim();
  } finally {
    lines.close();
  }
}

/** A line that is drawn again on a terminal; elsewhere a line for each tenth. */
class Progress {
  #shown = -1;

  show(percent: number): void {
    const isTerminal = process.stdout.isTTY === true;
    const step = isTerminal ? Math.floor(percent) : Math.floor(percent / 10) * 10;
    if (step === this.#shown) return;
    this.#shown = step;
    if (!isTerminal) console.log(`${step} %`);
    else {
      const filled = Math.floor(step / 4);
      process.stdout.write(`\r[${'='.repeat(filled)}${' '.repeat(25 - filled)}] ${step} %`);
    }
  }

  end(): void {
    if (process.stdout.isTTY === true && this.#shown >= 0) process.stdout.write('\r\x1b[K');
  }
}
