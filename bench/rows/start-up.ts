/**
 * From the command to Ready: an empty data directory, and a full one after kill -9; and the processor time of
 * a start and of an operator's command, beside the minimum of Node.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '../../test/harness/client.ts';
import { fillBucket } from '../filling.ts';
import { cpuMs, endedCpuMs } from '../process-figures.ts';
import { median } from '../ratios.ts';
import {
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  uploadObject,
  withCloud,
} from '../workshop.ts';

const OBJECTS = 100_000;
const ROOT = join(import.meta.dirname, '../..');
const LAUNCHER = join(ROOT, 'bin/cloudlet');
const SET_UP = join(ROOT, 'scripts/setup.js');
const NODE = join(ROOT, 'node_modules/.bin/node');

interface Starts {
  readonly work: string;
  readonly target: string;
  readonly most: number;
  readonly seconds: readonly number[];
}

function startRow({ work, target, most, seconds }: Starts): Row {
  const middle = median(seconds);
  const spread = `${Math.min(...seconds).toFixed(2)}–${Math.max(...seconds).toFixed(2)}`;
  return {
    work,
    target,
    reached: `**${middle.toFixed(2)} s** (${spread})`,
    isMet: middle <= most,
    detail: `${seconds.length} starts`,
  };
}

/** Processor time of a program that runs to its end, s. */
function cpuOf(program: string, words: readonly string[]): number {
  const before = endedCpuMs();
  const { status, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${words.join(' ')}: ${stderr}`);
  return (endedCpuMs() - before) / 1000;
}

/** From the command to the line that says so, as it prints itself, s. */
function devSeconds(): number {
  const { status, stderr } = spawnSync(LAUNCHER, ['dev', '--', 'true'], { encoding: 'utf8' });
  const [, seconds] = / is ready in ([\d.]+) s/.exec(stderr) ?? [];
  if (status !== 0 || seconds === undefined) throw new Error(`cloudlet dev: ${stderr}`);
  return Number(seconds);
}

/** A tree with the sources of the server and the packages of this one, to change. */
function makeTree(folder: string): string {
  const tree = join(folder, 'tree');
  const files = ['server', 'libs', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json'];
  for (const name of files) cpSync(join(ROOT, name), join(tree, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  return tree;
}

/** The build before the next start when a source of the server has changed, s. */
function rebuildSeconds(tree: string): number {
  appendFileSync(join(tree, 'server/main.ts'), '// Changed.\n');
  const began = performance.now();
  const { status, stderr } = spawnSync(NODE, ['scripts/builds.js'], { cwd: tree, encoding: 'utf8' });
  if (status !== 0) throw new Error(`scripts/builds.js: ${stderr}`);
  return (performance.now() - began) / 1000;
}

async function timeStart({ process }: Cloud): Promise<number> {
  const began = performance.now();
  await process.start();
  return (performance.now() - began) / 1000;
}

function starts(options: RunOptions): Promise<Row[]> {
  const rounds = options.quick ? 3 : 7;
  return withCloud(options, async (cloud) => {
    const { process, client, key } = cloud;
    const empty: number[] = [];
    const full: number[] = [];
    const cost = {
      start: [] as number[],
      command: [] as number[],
      setUp: [] as number[],
      node: [] as number[],
    };
    await createBucket(client, { name: 'bench' });
    for (let round = 0; round < rounds; round++) {
      await process.stop();
      empty.push(await timeStart(cloud));
      cost.start.push(cpuMs(process.pid) / 1000);
      cost.command.push(cpuOf(LAUNCHER, ['admin', 'key', '--data-dir', process.dataDir]));
      cost.setUp.push(cpuOf(NODE, [SET_UP, 'start']));
      cost.node.push(cpuOf(NODE, ['-e', '0']));
    }
    const dev = Array.from({ length: rounds }, devSeconds);
    const tree = makeTree(options.folder);
    const built = Array.from({ length: rounds }, () => rebuildSeconds(tree));
    await process.stop();
    fillBucket(process.dataDir, 'bench', { objects: OBJECTS });
    await process.start();
    for (let round = 0; round < rounds; round++) {
      // So that only the next start can move some of the log into the database.
      await uploadObject(new Client(process.api, key), 'bench', randomBytes(4096));
      await process.crash();
      full.push(await timeStart(cloud));
    }
    const node = `node -e 0: ${median(cost.node).toFixed(2)} s`;
    return [
      {
        ...startRow({
          work: 'start: processor until Ready',
          target: '≤ 0.6 s',
          most: 0.6,
          seconds: cost.start,
        }),
        detail: node,
      },
      {
        ...startRow({ work: 'admin key: processor', target: '≤ 0.3 s', most: 0.3, seconds: cost.command }),
        detail: node,
      },
      {
        ...startRow({
          work: 'set-up before a second `npm start`: processor',
          target: '≤ 0.2 s',
          most: 0.2,
          seconds: cost.setUp,
        }),
        detail: node,
      },
      startRow({
        work: 'second start, empty data directory: Ready',
        target: '≤ 0.8 s',
        most: 0.8,
        seconds: empty,
      }),
      startRow({ work: 'cloudlet dev: ready', target: '≤ 1 s', most: 1, seconds: dev }),
      startRow({ work: 'build after a changed source', target: '≤ 2 s', most: 2, seconds: built }),
      startRow({ work: 'start after kill -9 with 100,000 objects', target: '≤ 3 s', most: 3, seconds: full }),
    ];
  });
}

export const START_UP: readonly Measurement[] = [{ name: 'start-up', run: starts }];
