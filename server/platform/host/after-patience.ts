/** Waits that grow with the load of the host. */
import { systemClock } from '../clock.ts';
import { hostLoad, patienceMs } from './host-facts.ts';

/** A host that was busy may be idle again. */
const LOOK_MS = 5000;

/**
 * Calls `late` with the ms that passed, once, after work that takes at most `ms` on an idle host has had its
 * time on this one. The result ends the wait.
 */
export function afterPatience(ms: number, late: (passedMs: number) => void, load = hostLoad): () => void {
  const begunAt = systemClock.monotonic();
  let timer: NodeJS.Timeout;
  const look = () => {
    const passedMs = systemClock.monotonic() - begunAt;
    const leftMs = patienceMs(ms, load()) - passedMs;
    if (leftMs <= 0) late(passedMs);
    else timer = setTimeout(look, Math.min(leftMs, LOOK_MS));
  };
  timer = setTimeout(look, ms);
  return () => clearTimeout(timer);
}
