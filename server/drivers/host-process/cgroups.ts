/**
 * Limits that the kernel keeps for each foreign process and its children, by a control group (version 2) of
 * its own, where this host lets us make some. `problem` says why it does not.
 *
 * Where: beside us in the part of the tree that systemd gave us (deploy/cloudlet.service: Delegate=, and we
 * in a subgroup), never in our own group, which may hold no processes and limited children at once; without
 * systemd in the root. Elsewhere the tree is someone else's. The groups outlive us as the processes do.
 */
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface CgroupPlaces {
  /** Where the tree is mounted, `/sys/fs/cgroup`. */
  readonly mount: string;
  /** What names our own group, `/proc/self/cgroup`. */
  readonly self: string;
  /** There when systemd rules the host, `/run/systemd/system`. */
  readonly systemd: string;
}

const PLACES: CgroupPlaces = {
  mount: '/sys/fs/cgroup',
  self: '/proc/self/cgroup',
  systemd: '/run/systemd/system',
};
/** DelegateSubgroup= of deploy/cloudlet.service. */
export const OWN_SUBGROUP = 'cloudlet-control';
const CONTROLLERS = ['memory', 'cpu', 'pids'] as const;
/** A group can be removed a little after its last process. */
const REMOVE_TRIES = 10;
const REMOVE_STEP_MS = 50;

export class Cgroups {
  readonly #group: string;
  readonly #places: CgroupPlaces;
  #found: { readonly folder: string; readonly problem: string } | null = null;

  /** `group` holds those that are made here: `cloudlet-machines`. */
  constructor(group: string, places: Partial<CgroupPlaces> = {}) {
    this.#group = group;
    this.#places = { ...PLACES, ...places };
  }

  /** Why processes have no limits here, for humans; empty when they have. */
  get problem(): string {
    return this.#parent().problem;
  }

  /** The group that holds all; made when it is first asked for. */
  #parent(): { readonly folder: string; readonly problem: string } {
    this.#found ??= prepare(findParent(this.#places), this.#group);
    return this.#found;
  }

  /**
   * Puts a process, which has not done anything yet, with all its threads into the group `name`, whose
   * `limits` are texts by name of a control file. Throws when the kernel refuses; does nothing where there
   * are no limits.
   */
  place(name: string, pid: number, limits: Readonly<Record<string, string>>): void {
    const parent = this.#parent();
    if (parent.problem !== '') return;
    const folder = join(parent.folder, name);
    fs.mkdirSync(folder, { recursive: true });
    for (const [file, value] of Object.entries(limits)) fs.writeFileSync(join(folder, file), value);
    fs.writeFileSync(join(folder, 'cgroup.procs'), String(pid));
  }

  /** Removes the group of a process that is gone; one that cannot go stays for its next run. */
  async remove(name: string): Promise<void> {
    const parent = this.#parent();
    if (parent.problem !== '') return;
    for (let tries = 0; tries < REMOVE_TRIES; tries++) {
      try {
        fs.rmdirSync(join(parent.folder, name));
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EBUSY') return;
        await sleep(REMOVE_STEP_MS);
      }
    }
  }
}

/** The group under which ours may be made. Looks, and changes nothing. */
export function findParent(places: Partial<CgroupPlaces> = {}): { folder: string; problem: string } {
  const { mount, self, systemd } = { ...PLACES, ...places };
  const no = (problem: string) => ({ folder: '', problem });
  if (!fs.existsSync(join(mount, 'cgroup.controllers'))) return no('this host has no cgroup version 2');
  let own: string | undefined;
  try {
    own = /^0::(\/.*)$/m.exec(fs.readFileSync(self, 'utf8'))?.[1];
  } catch {
    own = undefined;
  }
  if (own === undefined) return no('the own cgroup is not known');
  const isDelegated = basename(own) === OWN_SUBGROUP;
  if (!isDelegated && fs.existsSync(systemd)) {
    return no(
      `systemd gave Cloudlet no cgroups of its own (deploy/cloudlet.service does, from systemd 254 on)`,
    );
  }
  if (!isDelegated && own !== '/') return no('the cgroups here belong to another program');
  const folder = join(mount, isDelegated ? dirname(own) : '/');
  const offered = read(join(folder, 'cgroup.controllers')).split(/\s+/);
  const missing = CONTROLLERS.filter((name) => !offered.includes(name));
  if (missing.length > 0) return no(`this host's cgroups limit no ${missing.join(', ')}`);
  return { folder, problem: '' };
}

function read(path: string): string {
  try {
    return fs.readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Hands the controllers down, through both levels. */
function prepare(
  parent: { readonly folder: string; readonly problem: string },
  group: string,
): typeof parent {
  if (parent.problem !== '') return parent;
  const folder = join(parent.folder, group);
  const enabled = CONTROLLERS.map((name) => `+${name}`).join(' ');
  try {
    fs.writeFileSync(join(parent.folder, 'cgroup.subtree_control'), enabled);
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(join(folder, 'cgroup.subtree_control'), enabled);
    return { folder, problem: '' };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { folder: '', problem: `cgroups cannot be made here (${code})` };
  }
}
