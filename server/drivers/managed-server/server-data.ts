/** The folder of a managed server, the program that fills it, and the version of its data. */
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isCode, writeDurableFile } from '../../platform/files.ts';
import type { ForeignProgram } from '../host-process/foreign-program.ts';
import type { HostProcesses } from '../host-process/host-processes.ts';
import type { ServerFolders } from './managed-server.ts';

/** A file in the keeper's folder. */
const SERIES = 'series';

/** Path of a server's folder in the data directory, for messages: `databases/mysql/accounts/7/home`. */
export function pathInData(folder: string): string {
  const at = folder.lastIndexOf('/databases/');
  return at < 0 ? folder : folder.slice(at + 1);
}

/** The folder of the server's socket, in its home. */
export const RUN = 'run';

export function socketFolder({ home }: Pick<ServerFolders, 'home'>): string {
  return join(home, RUN);
}

/** Creates a folder for the files of the server's user, unless it exists. */
export function makeFolder(path: string, uid: number | null): void {
  try {
    fs.mkdirSync(path, { mode: 0o711 });
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
  }
  if (uid !== null) fs.lchownSync(path, uid, uid);
}

/** Runs a program that creates data to its end, without a network. Throws its last output if it fails. */
export async function runMaker(
  processes: HostProcesses,
  program: Omit<ForeignProgram, 'network'>,
  input = '',
): Promise<void> {
  const running = await processes.start({ ...program, network: 'none' }, { stdio: ['pipe', 'pipe', 'pipe'] });
  const { stdin, stdout, stderr } = running.child ?? {};
  // The program may end before it has read all input.
  stdin?.on('error', () => {}).end(input);
  const [output, errors] = await Promise.all([stdout, stderr].map((stream) => (stream ? text(stream) : '')));
  const { code } = await running.ended;
  const said = `${output}\n${errors}`.trim().slice(-500);
  if (code !== 0) throw new Error(`${program.name} ended with ${code}: ${said}`);
}

/** `10.11`, of existing data; null: none. */
export function dataSeries({ keeper }: Pick<ServerFolders, 'keeper'>): string | null {
  try {
    return /^\d+\.\d+/.exec(fs.readFileSync(join(keeper, SERIES), 'latin1'))?.[0] ?? null;
  } catch {
    return null;
  }
}

/** Stores it once there is data. */
export function keepSeries({ keeper }: Pick<ServerFolders, 'keeper'>, series: string): void {
  writeDurableFile(join(keeper, SERIES), `${series}\n`, 0o600);
}

/** Name of a process for that `folder`, unique among clouds of a host. */
export function processName(what: string, folder: string): string {
  return `${what}-${createHash('sha256').update(folder).digest('hex').slice(0, 8)}`;
}
