/** Figures of a process from the kernel. */
import { readFileSync } from 'node:fs';

const MS_PER_TICK = 10;

/** Processor time of a process with all its threads, ms. */
export function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

/** Processor time of all our ended children, including theirs, ms. */
export function endedCpuMs(): number {
  const text = readFileSync('/proc/self/stat', 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK;
}

/** A figure of `/proc/<pid>/status`, such as `VmRSS` (resident now) or `VmHWM` (at most ever). */
export function statusBytes(pid: number, name: string): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kibibytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1];
  if (kibibytes === undefined) throw new Error(`the kernel does not tell ${name}`);
  return Number(kibibytes) * 1024;
}
