/** How much memory this host can still give; a limit of a container or a service counts as the host's own. */
import { readFileSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { dirname, join } from 'node:path';

export interface HostMemory {
  /** The host's memory, or the narrowest limit. */
  readonly totalBytes: number;
  /** What programs can still be given without swapping, and without meeting a limit. */
  readonly availableBytes: number;
  /** Whether we may have less than the host has: a control group's limit. */
  readonly isLimited: boolean;
}

/** Both versions of control groups: where the tree is, which line names our group, and its figures. */
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

/** The figures of this moment. `root`: of a tree with `/proc` and `/sys`. */
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
      // Pages of files that were not used lately are given back when others are needed.
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

/** Its figures by name, bytes. */
function meminfo(root: string): (name: string) => number | undefined {
  const text = read(join(root, 'proc/meminfo'));
  return (name) => {
    const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  };
}

/** Whether the host overcommits memory, as most hosts do. */
export const ALLOW_PROMISES = 'sysctl -w vm.overcommit_memory=0';

/**
 * What the host still promises to programs, where it promises no more than it has
 * (`vm.overcommit_memory=2`); null where it promises more.
 */
export function promisableBytes(root = '/'): number | null {
  if (read(join(root, 'proc/sys/vm/overcommit_memory')) !== '2') return null;
  const figures = meminfo(root);
  return Math.max(0, (figures('CommitLimit') ?? 0) - (figures('Committed_AS') ?? 0));
}

/** A group and all above it. In a container those above cannot be seen, and its own may be the root. */
function withParents(group: string): string[] {
  return group === '/' ? ['/'] : [group, ...withParents(dirname(group))];
}

/** `max`, or what is not there, limits nothing. */
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
