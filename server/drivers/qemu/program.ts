/** Finds QEMU on this host and its features. */
import { execFile } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../../platform/errors.ts';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { hostPath } from '../../platform/host/host-programs.ts';

const run = promisify(execFile);
const ASK_MS = 10_000;
/** Searched in addition to the usual folders; the last one is RHEL's. */
const QEMU_FOLDERS = ['/usr/local/bin', '/opt/qemu/bin', '/usr/libexec'];
/** RHEL and its relatives call it `qemu-kvm`. */
const NAMES = ['qemu-system-x86_64', 'qemu-kvm'];
/** The oldest version that supports all of our arguments, such as `reserve` of memory. */
const OLDEST = [6, 1] as const;
const INSTALL_HINT =
  'install it: apt-get install qemu-system-x86 qemu-utils (RHEL, Fedora: dnf install qemu-kvm qemu-img)';

export interface QemuProgram {
  readonly path: string;
  /** `7.2.22`. */
  readonly version: string;
  /** The newest versioned q35 it has: `pc-q35-7.2`. */
  readonly machine: string;
  /** Versioned machine types of this QEMU, newest first. */
  readonly machines: readonly string[];
}

/** Why no QEMU is usable, and the fix. */
export interface NoQemu {
  readonly problem: string;
  readonly fix: string;
}

const NOT_INSTALLED: NoQemu = { problem: 'QEMU is not installed on this host', fix: INSTALL_HINT };

/** The versioned q35 machines in the output of `-machine help`, newest first; RHEL names them differently. */
export function versionedMachines(help: string): string[] {
  const found = [...help.matchAll(/^(pc-q35-(?:rhel)?(\d+)\.(\d+)(?:\.\d+)?)\s/gm)].map(
    ([, name = '', major, minor]) => ({ name, major: Number(major), minor: Number(minor) }),
  );
  found.sort((a, b) => b.major - a.major || b.minor - a.minor);
  return found.map(({ name }) => name);
}

/** The machine type for a guest that had `before`: the same, or the newest if this QEMU does not know it. */
export function chooseMachine(before: string | undefined, { machine, machines }: QemuProgram): string {
  return before !== undefined && machines.includes(before) ? before : machine;
}

/** Changes if the program may have changed; null: not installed. */
async function programStamp(path: string): Promise<string | null> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return null;
    await access(path, constants.X_OK);
    return `${path} ${found.ino} ${found.size} ${found.mtimeMs}`;
  } catch {
    return null;
  }
}

export class QemuPrograms {
  readonly #folders: readonly string[] | undefined;
  /** Facts by the stamp of the program. */
  readonly #known = new Map<string, Promise<QemuProgram | NoQemu>>();

  /** `folders`: searched instead of the usual ones and PATH. */
  constructor(folders?: readonly string[]) {
    this.#folders = folders;
  }

  #paths(name: string): string[] {
    const folders = this.#folders ?? [...hostPath().split(':'), ...QEMU_FOLDERS];
    return [...new Set(folders)].map((folder) => join(folder, name));
  }

  /** The first usable installed QEMU; else the problem of the first one found. */
  async detect(): Promise<QemuProgram | NoQemu> {
    let problem: NoQemu | null = null;
    for (const path of NAMES.flatMap((name) => this.#paths(name))) {
      const stamp = await programStamp(path);
      if (stamp === null) continue;
      const known = this.#known.get(stamp) ?? describe(path);
      this.#known.set(stamp, known);
      const found = await known;
      if ('path' in found) return found;
      problem ??= found;
    }
    return problem ?? NOT_INSTALLED;
  }

  /** Like detect(); null: no usable QEMU. */
  async system(): Promise<QemuProgram | null> {
    const found = await this.detect();
    return 'path' in found ? found : null;
  }

  /** Path of `qemu-img`, or null. */
  async image(): Promise<string | null> {
    for (const path of this.#paths('qemu-img')) if ((await programStamp(path)) !== null) return path;
    return null;
  }
}

async function describe(path: string): Promise<QemuProgram | NoQemu> {
  const ask = async (...words: string[]) =>
    (await run(path, words, { timeout: patienceMs(ASK_MS), env: { LANG: 'C' } })).stdout;
  try {
    const [about, help] = await Promise.all([ask('--version'), ask('-machine', 'help')]);
    const version = /version (\d+(?:\.\d+)*)/.exec(about)?.[1];
    if (version === undefined) return doesNotRun(path);
    if (isTooOld(version)) return tooOld(version);
    const machines = versionedMachines(help);
    const [machine] = machines;
    if (machine === undefined) return withoutQ35(version);
    return { path, version, machine, machines };
  } catch {
    return doesNotRun(path);
  }
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST;
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

function tooOld(version: string): NoQemu {
  return {
    problem: `QEMU ${version} of this host is too old: machines need QEMU ${OLDEST.join('.')} or newer`,
    fix: 'install a newer QEMU on the PATH, or update the system: Debian 12, Ubuntu 22.04 and RHEL 9 have one',
  };
}

function withoutQ35(version: string): NoQemu {
  const problem = `QEMU ${version} of this host has no machine type q35`;
  return { problem, fix: 'install QEMU from the distribution, which includes it' };
}

function doesNotRun(path: string): NoQemu {
  const name = path.split('/').at(-1);
  const problem = 'QEMU is installed on this host, but does not run';
  return { problem, fix: `${name} --version shows the reason; else reinstall it: ${INSTALL_HINT}` };
}

/** Images cannot be used without `qemu-img`. */
export function noQemuImg(): AppError {
  return new AppError('engine_unavailable', 'qemu-img is not installed on this host', { hint: INSTALL_HINT });
}
