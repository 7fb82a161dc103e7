/** A copy of a database server of Cloudlet, started by hand: the yardstick of its statements. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, globSync, lchownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { freePort } from '../test/harness/free-port.ts';

/** The launch of a server. */
export interface ServerLine {
  readonly pid: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly uid: number;
  readonly gid: number;
  readonly port: number;
  /** All of its data, and its path from the view of the server. */
  readonly home: string;
  readonly seen: string;
}

export interface ServerByHand {
  readonly port: number;
  stop(): Promise<void>;
}

/** Programs unpacked by the set-up, whose folder other users cannot access. */
const UNPACKED = /^(\/.*\/build\/programs\/[^/]+)\//;
const DATA = /^(?:--datadir=)?(\/.*)\/data$/;
const PORT = /^(?:--port|port)=(\d+)$/;

/** The process of the server of the first account, also after its end. */
export function serverPidOf(dataDir: string, engine: 'postgresql' | 'mysql'): number {
  return Number(readFileSync(join(folderOf(dataDir, engine), 'keeper', 'run'), 'latin1').split(' ')[1]);
}

/** The server of the first account: the others are there as load. */
function folderOf(dataDir: string, engine: 'postgresql' | 'mysql'): string {
  const found = globSync(join(dataDir, 'databases', engine, 'accounts/*'));
  return found.sort((one, other) => Number(basename(one)) - Number(basename(other)))[0] ?? '';
}

/** Reads it off the running server of the cloud in that data directory. */
export function serverLineOf(dataDir: string, engine: 'postgresql' | 'mysql'): ServerLine {
  const folder = folderOf(dataDir, engine);
  const pid = serverPidOf(dataDir, engine);
  const words = (name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8').split('\0').slice(0, -1);
  const args = words('cmdline');
  const found = (pattern: RegExp) => args.map((arg) => pattern.exec(arg)?.[1]).find(Boolean) ?? '';
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const id = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return {
    pid,
    args,
    env: Object.fromEntries(words('environ').map((word) => word.split(/=(.*)/s).slice(0, 2))),
    uid: id('Uid'),
    gid: id('Gid'),
    port: Number(found(PORT)),
    home: join(folder, 'home'),
    seen: found(DATA),
  };
}

/** Copies its data, for which it must be stopped, and its programs; same user and settings, another port. */
export async function startByHand(line: ServerLine, folder: string): Promise<ServerByHand> {
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  const copy = join(folder, 'home');
  cpSync(line.home, copy, { recursive: true, verbatimSymlinks: true });
  const names = readdirSync(copy, { recursive: true }) as string[];
  for (const name of ['.', ...names]) lchownSync(join(copy, name), line.uid, line.gid);
  const programs = line.args.map((arg) => UNPACKED.exec(arg)?.[1]).find(Boolean);
  const ownPrograms = join(folder, 'programs');
  if (programs !== undefined) cpSync(programs, ownPrograms, { recursive: true, verbatimSymlinks: true });
  const port = await freePort();
  const here = (text: string) => {
    const own = programs === undefined ? text : text.replaceAll(programs, ownPrograms);
    const ported = own.replace(PORT, (word) => word.replace(String(line.port), String(port)));
    return ported.replaceAll(`${line.seen}/`, `${copy}/`);
  };
  const [program = '', ...args] = line.args.map(here);
  const env = Object.fromEntries(Object.entries(line.env).map(([name, value]) => [name, here(value)]));
  const { uid, gid } = line;
  // In its own session, like ours: the scheduler divides the processors among sessions.
  const child = spawn(program, args, {
    env,
    uid,
    gid,
    cwd: join(copy, 'data'),
    stdio: 'ignore',
    detached: true,
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  return { port, stop: () => stop(child, kill) };
}

async function stop(child: ChildProcess, kill: () => void): Promise<void> {
  process.off('exit', kill);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}
