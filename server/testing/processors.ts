import { readdirSync, readFileSync } from 'node:fs';

/** Processors that the process may use, such as `0-3`; empty: it is unknown. */
export function allowedProcessors(pid: number | 'self' | null): string {
  return /^Cpus_allowed_list:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
}

/** The slices of its threads, ns; none: Linux before 6.12, or this kernel does not show them. */
export function slicesNs(pid: number | 'self'): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .map((tid) => /se\.slice +: +(\d+)/.exec(readFileSync(`/proc/${pid}/task/${tid}/sched`, 'latin1')))
    .flatMap((found) => (found?.[1] === undefined ? [] : [Number(found[1])]));
}
