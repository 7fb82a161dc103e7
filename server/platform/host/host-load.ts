/** The load of this host: a program that others hold up must be waited for with more patience. */
import { availableParallelism, loadavg } from 'node:os';

/**
 * How many programs want each processor, as an average of the last minute: 1 on a host with processors to
 * spare, 25 with a load of 50 on two processors. Where the system tells no load (Windows), 1.
 */
export function hostLoad(load = loadavg()[0] ?? 0, processors = availableParallelism()): number {
  return Math.max(1, load / processors);
}

/**
 * How long to wait on this host, now, for something that takes at most `ms` on a quiet host.
 * Ask again while waiting: the load of a host that has just become busy rises for a minute.
 */
export function patienceMs(ms: number): number {
  return ms * hostLoad();
}
