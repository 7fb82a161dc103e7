/** Finds QEMU on this host and what it can do. */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ASK_MS = 10_000;
const DEFAULT_DIRECTORIES: readonly string[] = ['/usr/bin', '/usr/local/bin', '/opt/qemu/bin'];
export const INSTALL_HINT = 'install it: apt-get install qemu-system-x86 qemu-utils';

export interface QemuProgram {
  readonly path: string;
  /** `7.2.22`. */
  readonly version: string;
  /** The newest versioned q35 it has: `pc-q35-7.2`. */
  readonly machine: string;
  /** All that it has, newest first. */
  readonly machines: readonly string[];
}

/** The versioned q35 machines in the output of `-machine help`, newest first. */
export function versionedMachines(help: string): string[] {
  const versions = [...help.matchAll(/^pc-q35-(\d+)\.(\d+)\s/gm)].map(
    ([, major, minor]) => [Number(major), Number(minor)] as const,
  );
  versions.sort(([a, b], [c, d]) => c - a || d - b);
  return versions.map((version) => `pc-q35-${version.join('.')}`);
}

/** What a guest that was `before` is started as: the same, or the newest when this QEMU does not know it. */
export function chooseMachine(before: string | undefined, { machine, machines }: QemuProgram): string {
  return before !== undefined && machines.includes(before) ? before : machine;
}

async function fileStamp(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null);
  return found?.isFile() ? `${path} ${found.ino} ${found.size} ${found.mtimeMs}` : null;
}

export class QemuPrograms {
  readonly #directories: readonly string[];
  #stamp = '';
  #known: Promise<QemuProgram | null> = Promise.resolve(null);

  constructor(directories: readonly string[] = DEFAULT_DIRECTORIES) {
    this.#directories = directories;
  }

  /** QEMU as it is installed now; null: it is not, or does not run. Asked anew when the file changed. */
  async system(): Promise<QemuProgram | null> {
    for (const directory of this.#directories) {
      const path = join(directory, 'qemu-system-x86_64');
      const stamp = await fileStamp(path);
      if (stamp === null) continue;
      if (stamp !== this.#stamp) {
        this.#stamp = stamp;
        this.#known = describe(path);
      }
      return this.#known;
    }
    return null;
  }

  /** Path of `qemu-img`, or null. */
  async image(): Promise<string | null> {
    for (const directory of this.#directories) {
      const path = join(directory, 'qemu-img');
      if ((await fileStamp(path)) !== null) return path;
    }
    return null;
  }
}

async function describe(path: string): Promise<QemuProgram | null> {
  const ask = async (...words: string[]) =>
    (await run(path, words, { timeout: ASK_MS, env: { LANG: 'C' } })).stdout;
  try {
    const [about, help] = await Promise.all([ask('--version'), ask('-machine', 'help')]);
    const version = /version (\d+(?:\.\d+)*)/.exec(about)?.[1];
    const machines = versionedMachines(help);
    const [machine] = machines;
    return version === undefined || machine === undefined ? null : { path, version, machine, machines };
  } catch {
    return null;
  }
}
