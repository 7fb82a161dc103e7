/** The `mongod` of this host; the set-up does not install it. */
import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { promisify } from 'node:util';
import { patienceMs } from '../../../../platform/host/host-facts.ts';
import { findHostProgram } from '../../../../platform/host/host-programs.ts';
import { compareVersions, type NoPrograms } from '../../../managed-server/programs/unpacked-programs.ts';

const run = promisify(execFile);
const ASK_MS = 10_000;
export const OLDEST = '5.0';

export interface Mongod {
  /** `7.0.14`. */
  readonly version: string;
  /** `7.0`: data of one series does not fit another. */
  readonly series: string;
  /** Absolute. */
  readonly command: string;
  /** Paths that the process must see, besides system folders. */
  readonly readOnly: readonly string[];
}

/** Path of the program; null: not installed. */
export const mongodPath = (): string | null => findHostProgram('mongod');

/** Checks again each time: packages come and go while we run. `series`: of the existing data; null: any. */
export async function findMongod(series: string | null, path = mongodPath()): Promise<Mongod | NoPrograms> {
  const found = path === null ? null : await describe(path);
  if (series !== null && found?.series !== series) {
    const fix = `install MongoDB ${series} again; or dump its databases and load them into a newer server`;
    return { reason: `the data directory is MongoDB ${series}, which is not installed on this host`, fix };
  }
  const fix = `install MongoDB ${OLDEST} or newer`;
  if (path === null) return { reason: 'mongod is not installed on this host', fix };
  if (found === null) return { reason: `${path} does not report its version`, fix };
  if (compareVersions(found.version, OLDEST) >= 0) return found;
  return { reason: `the mongod of this host is ${found.version}, older than ${OLDEST}`, fix };
}

async function describe(path: string): Promise<Mongod | null> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: patienceMs(ASK_MS), env: { LC_ALL: 'C' } });
    const [, version, series] = /^db version v((\d+\.\d+)\.\d+)/m.exec(stdout) ?? [];
    if (version === undefined || series === undefined) return null;
    // A link leads out of the folders that a process sees.
    const command = realpathSync(path);
    return { version, series, command, readOnly: command.startsWith('/usr/') ? [] : [command] };
  } catch {
    return null;
  }
}
