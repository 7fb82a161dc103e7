/**
 * Kernel-enforced limits of each foreign process and its children, by a separate control group (version 2),
 * if this host allows creating groups. `problem` says why it does not.
 *
 * Groups are created beside ours in the part of the tree that systemd delegated to us
 * (deploy/cloudlet.service: Delegate=, and we in a subgroup), never in our own group, which cannot contain
 * both processes and limited children; without systemd, in the root. Otherwise the tree belongs to another
 * program. The groups remain after Cloudlet ends, as the processes do.
 *
 * systemd before 254 makes no subgroup, so we move into one ourselves. It starts us in the upper group again,
 * which must not delegate controllers then: the unit's ExecStopPost= removes them, also after a kill. The
 * kernel allows this only while no group below delegates controllers, so groups are created at one level
 * there, and adopted processes are assigned again.
 */
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../platform/clock.ts';
import { isCode } from '../../platform/files.ts';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { hostPath } from '../../platform/host/host-programs.ts';

export interface CgroupPaths {
  /** Mount point of the tree, `/sys/fs/cgroup`. */
  readonly mount: string;
  /** The file that names our own group, `/proc/self/cgroup`. */
  readonly self: string;
  /** There when systemd rules the host, `/run/systemd/system`. */
  readonly systemd: string;
  /** Whether systemd delegates the unit's group, which removes limits with the unit. */
  readonly isDelegated: (unit: string) => boolean;
}

interface Parent {
  /** Parent folder for new groups. */
  readonly folder: string;
  /** Why not, for humans; empty: they may. */
  readonly problem: string;
  /** systemd did not create a subgroup. */
  readonly isFlat: boolean;
}

const PATHS: CgroupPaths = {
  mount: '/sys/fs/cgroup',
  self: '/proc/self/cgroup',
  systemd: '/run/systemd/system',
  isDelegated,
};
/** DelegateSubgroup= of deploy/cloudlet.service. */
export const OWN_SUBGROUP = 'cloudlet-control';
/** The cgroup that Cloudlet creates. */
const MADE_SUBGROUP = 'cloudlet-self';
/** Parent groups, or with a single level, the groups. */
const HOLDER = /^cloudlet-(?:machines|databases|servers)/;
const HELD = ['cloudlet-machines', 'cloudlet-databases', 'cloudlet-servers'];
const EMPTY_MS = 60_000;
/** Rounds, because processes may start while others are moved. */
const MOVE_ROUNDS = 10;
const ASK_MS = 5000;
/** Ten times the share of all databases or all machines, because Cloudlet serves everybody. */
const OWN_WEIGHT = 1000;
const CONTROLLERS = ['memory', 'cpu', 'pids'] as const;
/** A group can be removed shortly after its last process has ended. */
const REMOVE_TRIES = 10;
const REMOVE_STEP_MS = 50;

export class Cgroups {
  readonly #group: string;
  readonly #paths: CgroupPaths;
  #found: { readonly prefix: string; readonly problem: string } | null = null;

  /** `group` contains the new groups: `cloudlet-machines`. */
  constructor(group: string, paths: Partial<CgroupPaths> = {}) {
    this.#group = group;
    this.#paths = { ...PATHS, ...paths };
  }

  /** Why processes have no limits here, for humans; empty when they have. */
  get problem(): string {
    return this.#parent().problem;
  }

  /** Path prefix of all groups. Creates the parent group at the first call. */
  #parent(): { readonly prefix: string; readonly problem: string } {
    this.#found ??= prepare(findParent(this.#paths), this.#group);
    return this.#found;
  }

  /**
   * Moves a process, which is new or adopted, with all its threads into the group `name`; `limits`: texts by
   * the name of a control file. Throws if the kernel refuses; does nothing without limits.
   */
  assign(name: string, pid: number, limits: Readonly<Record<string, string>>): void {
    const file = this.make(name, limits);
    if (file !== null) fs.writeFileSync(file, String(pid));
  }

  /** Creates the group. A process joins it when its id is written to the returned path; null: none. */
  make(name: string, limits: Readonly<Record<string, string>>): string | null {
    const parent = this.#parent();
    if (parent.problem !== '') return null;
    const folder = parent.prefix + name;
    fs.mkdirSync(folder, { recursive: true });
    markUsed(folder);
    for (const [file, value] of Object.entries(limits)) fs.writeFileSync(join(folder, file), value);
    return join(folder, 'cgroup.procs');
  }

  /** Removes the group of an ended process; one that cannot be removed stays for its next run. */
  async remove(name: string): Promise<void> {
    const parent = this.#parent();
    if (parent.problem !== '') return;
    await removeGroup(parent.prefix + name);
  }

  /** Removes the groups of ended processes and the parent. Creates none. */
  async removeAll(): Promise<void> {
    const { folder, problem, isFlat } = findParent(this.#paths);
    if (problem !== '') return;
    const holder = join(folder, this.#group);
    const all = isFlat
      ? foldersIn(folder).filter((path) => path.startsWith(`${holder}-`))
      : [...foldersIn(holder), holder];
    for (const path of all) await removeGroup(path);
  }
}

/**
 * Removes the groups without processes that killed clouds left, of any cloud. Recently created ones, which a
 * process is about to join, stay. Never throws.
 */
export async function removeEmptyGroups(paths: Partial<CgroupPaths> = {}): Promise<void> {
  const { folder, problem } = findParent(paths);
  if (problem !== '') return;
  const isOurs = (path: string) => HOLDER.test(basename(path));
  const holders = foldersIn(folder).filter(isOurs);
  for (const path of [...holders.flatMap(foldersIn), ...holders]) {
    const isHolder = HELD.includes(basename(path));
    if (!isHolder && isEmptyFor(path, EMPTY_MS)) await removeGroup(path);
  }
}

/** A group left by an earlier run is used again: removeEmptyGroups() keeps it. */
function markUsed(folder: string): void {
  const now = systemClock.now() / 1000;
  try {
    fs.utimesSync(folder, now, now);
  } catch {
    // At worst it is removed in the moment before its process joins it, which is then started again.
  }
}

function isEmptyFor(path: string, ms: number): boolean {
  const isEmpty = /^populated 0$/m.test(read(join(path, 'cgroup.events')));
  const { mtimeMs } = fs.statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Number.POSITIVE_INFINITY };
  return isEmpty && mtimeMs < systemClock.now() - ms;
}

function foldersIn(path: string): string[] {
  if (!fs.existsSync(path)) return [];
  const entries = fs.readdirSync(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name));
}

async function removeGroup(path: string): Promise<void> {
  for (let tries = 0; tries < REMOVE_TRIES; tries++) {
    try {
      fs.rmdirSync(path);
      return;
    } catch (error) {
      if (!isCode(error, 'EBUSY')) return;
      await sleep(REMOVE_STEP_MS);
    }
  }
}

/** The group under which ours may be created. Read-only. */
export function findParent(paths: Partial<CgroupPaths> = {}): Parent {
  const { mount, self, systemd, isDelegated } = { ...PATHS, ...paths };
  const no = (problem: string) => ({ folder: '', problem, isFlat: false });
  if (!fs.existsSync(join(mount, 'cgroup.controllers'))) return no('this host has no cgroup version 2');
  const own = /^0::(\/.*)$/m.exec(read(self))?.[1];
  if (own === undefined) return no("cannot determine Cloudlet's own cgroup");
  const isBelow = [OWN_SUBGROUP, MADE_SUBGROUP].includes(basename(own));
  const group = isBelow ? dirname(own) : own;
  const folder = join(mount, group);
  if (!isBelow && fs.existsSync(systemd)) {
    const isGiven = /\.(?:service|scope)$/.test(group) && isDelegated(basename(group));
    if (!isGiven) return no('systemd did not delegate cgroups to Cloudlet (as deploy/cloudlet.service does)');
  } else if (group === own && own !== '/') return no('the cgroups of this process belong to another program');
  const offered = read(join(folder, 'cgroup.controllers')).split(/\s+/);
  const missing = CONTROLLERS.filter((name) => !offered.includes(name));
  if (missing.length > 0) return no(`this host's cgroups have no controller for ${missing.join(', ')}`);
  return { folder, problem: '', isFlat: group !== '/' && basename(own) !== OWN_SUBGROUP };
}

function isDelegated(unit: string): boolean {
  const words = ['show', '--property=Delegate', '--property=ExecStopPost', '--', unit];
  const env = { PATH: hostPath(), LANG: 'C' };
  const { stdout } = spawnSync('systemctl', words, { env, encoding: 'utf8', timeout: patienceMs(ASK_MS) });
  return /^Delegate=yes$/m.test(stdout) && /^ExecStopPost=.*cgroup\.subtree_control/m.test(stdout);
}

function read(path: string): string {
  try {
    return fs.readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Delegates the controllers to the levels below. */
function prepare(
  { folder, problem, isFlat }: Parent,
  group: string,
): { readonly prefix: string; readonly problem: string } {
  if (problem !== '') return { prefix: '', problem };
  const holder = join(folder, group);
  const enabled = CONTROLLERS.map((name) => `+${name}`).join(' ');
  try {
    if (isFlat) leave(folder);
    fs.writeFileSync(join(folder, 'cgroup.subtree_control'), enabled);
    for (const name of [OWN_SUBGROUP, MADE_SUBGROUP]) weigh(join(folder, name));
    if (isFlat) return { prefix: `${holder}-`, problem };
    fs.mkdirSync(holder, { recursive: true });
    fs.writeFileSync(join(holder, 'cgroup.subtree_control'), enabled);
    return { prefix: join(holder, '/'), problem };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { prefix: '', problem: `cannot create cgroups (${code})` };
  }
}

/** Limits work without processor shares, which some kernels lack. */
function weigh(folder: string): void {
  try {
    if (fs.existsSync(folder)) fs.writeFileSync(join(folder, 'cpu.weight'), String(OWN_WEIGHT));
  } catch {
    // Cloudlet then has as much as all databases together.
  }
}

/** Moves our processes of the group into one below it. */
function leave(folder: string): void {
  const below = join(folder, MADE_SUBGROUP);
  fs.mkdirSync(below, { recursive: true });
  for (let round = 0; round < MOVE_ROUNDS; round++) {
    const pids = read(join(folder, 'cgroup.procs'));
    if (pids === '') return;
    for (const pid of pids.split('\n')) move(pid, below);
  }
}

function move(pid: string, folder: string): void {
  try {
    fs.writeFileSync(join(folder, 'cgroup.procs'), pid);
  } catch (error) {
    // The process has ended.
    if (!isCode(error, 'ESRCH')) throw error;
  }
}
