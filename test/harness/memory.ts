import { readFileSync } from 'node:fs';

/** Resident memory of a process, MiB; undefined: it has ended. */
export function residentMb({ pid }: { readonly pid: number }): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kb = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
    return kb === undefined ? undefined : Number(kb) / 1024;
  } catch {
    return undefined;
  }
}
