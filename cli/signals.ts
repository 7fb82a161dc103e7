/** Signals that ask the client to end. */
import { constants } from 'node:os';
import type { ExitCode } from './failures.ts';

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type EndingSignal = (typeof ENDING)[number];

/** By convention, the exit code shows which signal ended a program. */
const SIGNALLED = 128;

export function exitCodeOfSignal(signal: NodeJS.Signals): ExitCode {
  return (SIGNALLED + constants.signals[signal]) as ExitCode;
}

/**
 * Until the returned function is called, only `take` receives these signals. There is always a
 * listener: a signal without one ends the process at once.
 */
export function takeSignals(take: (signal: EndingSignal) => void): () => void {
  const former = ENDING.map((signal) => [signal, process.listeners(signal)] as const);
  for (const [signal, listeners] of former) {
    process.on(signal, take);
    for (const listener of listeners) process.off(signal, listener);
  }
  return () => {
    for (const [signal, listeners] of former) {
      for (const listener of listeners) process.on(signal, listener);
      process.off(signal, take);
    }
  };
}
