/**
 * Processes started by tests, so that none of them outlives the tests: servers, and processes in their data
 * directories (guests, which are designed to outlive their server). A run that ends or is ended cleans up
 * after itself; after a killed run, the next one does, from the records of the dead one.
 */
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { livingClouds } from '../../server/drivers/host-network/cloud-claim.ts';
import { testUidBase } from '../../server/testing/own-ground.ts';

interface Started {
  readonly pid: number;
  readonly startTime: string;
  readonly dataDir: string;
  /** Created for this test only, and to be removed. */
  readonly isTemporary: boolean;
}

/** A user without an entry in the host's list still has a number. */
const UID = process.getuid?.() ?? -1;
const DIRECTORY = join(tmpdir(), `cloudlet-tests-${UID}${namespace()}`);
const started = new Map<number, Started>();
let isWatching = false;

/** Containers may share this folder, but neither the numbers of their processes nor their users. */
function namespace(): string {
  try {
    const numberOf = (kind: string) => fs.readlinkSync(`/proc/self/ns/${kind}`).replace(/\D/g, '');
    return `-${numberOf('pid')}-${numberOf('user')}`;
  } catch {
    return '';
  }
}

/** Clock ticks from boot to the start of the process, unique for this number; null: gone. */
function startTimeOf(pid: number): string | null {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

/** Records a server, the leader of its process group, from its start on. */
export function noteStarted(pid: number, dataDir: string, isTemporary: boolean): void {
  const startTime = startTimeOf(pid);
  if (startTime === null) return;
  watchOwnEnd();
  const entry = { pid, startTime, dataDir, isTemporary };
  started.set(pid, entry);
  fs.mkdirSync(DIRECTORY, { recursive: true, mode: 0o700 });
  fs.appendFileSync(join(DIRECTORY, ownName()), `${JSON.stringify(entry)}\n`, { mode: 0o600 });
}

function ownName(): string {
  return `${process.pid}.${startTimeOf(process.pid)}`;
}

function watchOwnEnd(): void {
  if (isWatching) return;
  isWatching = true;
  sweepDeadRuns();
  process.on('exit', () => {
    for (const entry of started.values()) end(entry);
    removeRules(process.pid);
    fs.rmSync(join(DIRECTORY, ownName()), { force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
}

/** Ends the remains of dead runs. Only records of this user count. */
function sweepDeadRuns(): void {
  if (fs.statSync(DIRECTORY, { throwIfNoEntry: false })?.uid !== UID) return;
  for (const name of fs.readdirSync(DIRECTORY)) {
    const [pid = '', startTime] = name.split('.');
    if (startTimeOf(Number(pid)) === startTime) continue;
    const path = join(DIRECTORY, name);
    for (const entry of entriesIn(path)) end(entry);
    removeRules(Number(pid));
    fs.rmSync(path, { force: true });
  }
}

function entriesIn(path: string): Started[] {
  let text: string;
  try {
    text = fs.readFileSync(path, 'utf8');
  } catch {
    // Its run ended just now, or another one cleans up too.
    return [];
  }
  // The last line of a killed run may be incomplete.
  const lines = text.split('\n').filter((line) => line.endsWith('}'));
  return lines.map((line) => JSON.parse(line));
}

/** Clouds of a test process leave their rules in the host's firewall when they are killed. */
function removeRules(pid: number): void {
  removeTable('inet', `cloudlet_${testUidBase(pid)}`);
}

/** Direct routes of killed clouds. */
function removeRoutes(): void {
  if (UID !== 0) return;
  const listed = spawnSync('nft', ['list', 'tables', 'ip'], { encoding: 'utf8' }).stdout ?? '';
  const living = livingClouds();
  for (const [, name = '', token] of listed.matchAll(/(cloudlet_databases_cld_\w+_([0-9a-f]+))$/gm))
    if (living?.some((cloud) => cloud.token === token) === false) removeTable('ip', name);
}

function removeTable(family: string, name: string): void {
  if (UID === 0) spawnSync('nft', ['delete', 'table', family, name], { stdio: 'ignore' });
}

function end({ pid, startTime, dataDir, isTemporary }: Started): void {
  if (startTimeOf(pid) === startTime) kill(-pid);
  for (const inside of [...processesIn(dataDir), ...serversIn(dataDir)]) kill(inside);
  removeRoutes();
  if (isTemporary) fs.rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 });
}

/** Servers of databases, whose working directory is not visible from here. */
function serversIn(dataDir: string): number[] {
  return fs.globSync(`${dataDir}/databases/*/{server,accounts/*}/keeper/run`).flatMap((path) => {
    const [, pid, startTime] =
      /^\S+ (\d+) \(.*\)(?: \S+){19} (\d+) /.exec(fs.readFileSync(path, 'latin1')) ?? [];
    return pid !== undefined && startTimeOf(Number(pid)) === startTime ? [Number(pid)] : [];
  });
}

/** Processes that work in `directory`, also after it was removed. */
export function processesIn(directory: string): number[] {
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(`${directory}/`);
    } catch {
      // It ended meanwhile, or is not ours.
      return false;
    }
  });
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone already.
  }
}
