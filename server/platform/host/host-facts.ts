/** Facts about this host: its boot, its load and its memory. */
import { readFileSync } from 'node:fs';
import { availableParallelism, freemem, loadavg, totalmem } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * Programs per processor that want to run, averaged over a minute: 1 on a host with idle
 * processors, 25 with a load of 50 on two processors. 1 if the system reports no load (Windows).
 */
export function hostLoad(load = loadavg()[0] ?? 0, processors = availableParallelism()): number {
  return Math.max(1, load / processors);
}

/**
 * Time limit, on this host now, for work that takes at most `ms` on an idle host; whole, as limits of
 * programs must be. Call again while waiting: the load of a host that has just become busy rises for a
 * minute.
 */
export function patienceMs(ms: number, load = hostLoad()): number {
  return Math.ceil(ms * load);
}

/** Changes with every boot of the host; empty if the kernel does not provide it. */
export function hostBootId(): string {
  return read('/proc/sys/kernel/random/boot_id');
}

/** Memory of this host; a limit of a container or a service counts as the host's own. */
export interface HostMemory {
  /** The host's memory, or the lowest limit. */
  readonly totalBytes: number;
  /** Memory that programs can still get without swapping, and within all limits. */
  readonly availableBytes: number;
  /** True if a control group limits us to less than the host has. */
  readonly isLimited: boolean;
}

/** Both versions of control groups: mount point, the line with our group, and its figures. */
const VERSIONS = [
  {
    mount: 'sys/fs/cgroup',
    line: /^0::(\/.*)$/m,
    limits: ['memory.max', 'memory.high'],
    usage: 'memory.current',
    droppable: /^inactive_file (\d+)$/m,
  },
  {
    mount: 'sys/fs/cgroup/memory',
    line: /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(\/.*)$/m,
    limits: ['memory.limit_in_bytes'],
    usage: 'memory.usage_in_bytes',
    droppable: /^total_inactive_file (\d+)$/m,
  },
] as const;

/** Current figures. `root`: of a tree with `/proc` and `/sys`. */
export function readHostMemory(root = '/'): HostMemory {
  const host = hostFigures(root);
  const groups = read(join(root, 'proc/self/cgroup'));
  let { totalBytes, availableBytes } = host;
  for (const version of VERSIONS) {
    const own = version.line.exec(groups)?.[1];
    if (own === undefined) continue;
    for (const group of withParents(own)) {
      const folder = join(root, version.mount, group);
      const limit = Math.min(...version.limits.map((name) => figure(read(join(folder, name)))));
      if (limit >= host.totalBytes) continue;
      // Inactive file pages are reclaimed when memory is needed.
      const droppable = Number(version.droppable.exec(read(join(folder, 'memory.stat')))?.[1] ?? 0);
      const used = Number(read(join(folder, version.usage))) - droppable;
      totalBytes = Math.min(totalBytes, limit);
      availableBytes = Math.max(0, Math.min(availableBytes, limit - used));
    }
  }
  return { totalBytes, availableBytes, isLimited: totalBytes < host.totalBytes };
}

function hostFigures(root: string): { totalBytes: number; availableBytes: number } {
  const figures = meminfo(root);
  return {
    totalBytes: figures('MemTotal') ?? totalmem(),
    availableBytes: figures('MemAvailable') ?? freemem(),
  };
}

/** Memory figures by name, bytes. */
function meminfo(root: string): (name: string) => number | undefined {
  const text = read(join(root, 'proc/meminfo'));
  return (name) => {
    const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  };
}

/** The command that enables memory overcommit, the default of most hosts. */
export const ALLOW_OVERCOMMIT = 'sysctl -w vm.overcommit_memory=0';

/** Memory that can still be committed without overcommit (`vm.overcommit_memory=2`); null with overcommit. */
export function committableBytes(root = '/'): number | null {
  if (read(join(root, 'proc/sys/vm/overcommit_memory')) !== '2') return null;
  const figures = meminfo(root);
  return Math.max(0, (figures('CommitLimit') ?? 0) - (figures('Committed_AS') ?? 0));
}

/** A group and its ancestors. In a container the ancestors are not visible, and its own may be the root. */
function withParents(group: string): string[] {
  return group === '/' ? ['/'] : [group, ...withParents(dirname(group))];
}

/** `max`, or a missing file, is no limit. */
function figure(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return '';
  }
}
