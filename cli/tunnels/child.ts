/** Runs a program that takes over the terminal until it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { EXIT, type ExitCode } from '../failures.ts';
import { exitCodeOfSignal, takeSignals } from '../signals.ts';

export interface Started {
  readonly program: string;
  readonly args: readonly string[];
  /** Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** A file that is open here and becomes descriptor 3 there. */
  readonly file?: number | undefined;
}

/**
 * Runs it with the standard streams of this client and resolves with its exit code. Signals that
 * end the client end the program. Rejects if it cannot be started.
 */
export async function runChild({ program, args, env, file }: Started): Promise<ExitCode> {
  const more = file === undefined ? [] : [file];
  const child = spawn(program, args, {
    stdio: ['inherit', 'inherit', 'inherit', ...more],
    ...(env !== undefined && { env }),
  });
  // The program handles interrupts itself: psql cancels a query and continues.
  const giveBack = takeSignals((signal) => {
    if (signal !== 'SIGINT') child.kill(signal);
  });
  const end = () => child.kill();
  process.on('exit', end);
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code !== null) return code as ExitCode;
    return signal === null ? EXIT.failure : exitCodeOfSignal(signal);
  } finally {
    process.off('exit', end);
    giveBack();
  }
}
