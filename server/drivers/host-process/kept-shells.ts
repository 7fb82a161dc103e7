/**
 * The shells that wait for foreign processes. To make a process takes us the longer the more memory we have,
 * and a shell that closes descriptors its own time, so one that is past all this is kept at hand: it waits
 * for what it is to run, and ends with us when nothing comes.
 */
import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { startProgram } from '../../platform/child-process.ts';
import { withoutOthers } from './ending-note.ts';
import { isThere } from './process-identity.ts';

/** What others see in a list of processes; the shell takes no other words. */
const NAME = 'cloudlet-keeper';

export interface Shell {
  /** The shell's PID; the shell leads a process group of its own. */
  readonly pid: number;
  /** Whether it runs. */
  readonly isAlive: boolean;
  /** Has it run `script`, a whole one. Resolves with what it wrote to descriptor 3, up to an end of line. */
  run(script: string): Promise<string>;
}

export class KeptShells {
  #spare: Promise<KeptShell | null> | null = null;
  #isClosed = false;

  /** Makes the next one, unless it is there. */
  refill(): void {
    if (this.#isClosed || this.#spare !== null) return;
    const spare = KeptShell.begin(() => {
      if (this.#spare === spare) this.#spare = null;
    }).catch(() => null);
    this.#spare = spare;
  }

  /** The one at hand, or a new one. Rejects with what the host says when it can be made no more. */
  async take(): Promise<Shell> {
    const spare = this.#spare;
    this.#spare = null;
    const shell = (await spare) ?? null;
    return shell?.isAlive ? shell : KeptShell.begin();
  }

  /** Ends the one at hand. */
  close(): void {
    this.#isClosed = true;
    void this.#spare?.then((shell) => shell?.dismiss());
    this.#spare = null;
  }
}

class KeptShell implements Shell {
  readonly #child: ChildProcess;
  readonly #output: Readable;
  readonly pid: number;

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.#output = child.stdio[3] as Readable;
    this.pid = pid;
  }

  static async begin(onEnd: () => void = () => {}): Promise<KeptShell> {
    // It reads as much at once as there is, and does nothing before the last line of a script is there.
    const [program, words] = withoutOthers(['/bin/sh', '-s', NAME]);
    const child = await startProgram(program, words, {
      cwd: '/',
      env: {},
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    });
    child.once('exit', onEnd);
    // It may have ended; what it then does not say tells.
    child.stdin?.on('error', () => {});
    const shell = new KeptShell(child, child.pid ?? 0);
    shell.#letGo();
    return shell;
  }

  /** Its handles keep the event loop alive only while a script runs. */
  #letGo(): void {
    this.#child.unref();
    for (const stream of [this.#child.stdin, this.#output]) (stream as Partial<{ unref(): void }>).unref?.();
  }

  get isAlive(): boolean {
    const { exitCode, signalCode } = this.#child;
    // We hear of an end a little late.
    return exitCode === null && signalCode === null && isThere(this.pid);
  }

  async run(script: string): Promise<string> {
    (this.#output as Partial<{ ref(): void }>).ref?.();
    (this.#child.stdin as Writable).end(script);
    let text = '';
    for await (const piece of this.#output) {
      text += piece;
      // Leaving closes the pipe.
      if (text.endsWith('\n')) break;
    }
    return text;
  }

  dismiss(): void {
    this.#child.stdin?.destroy();
    this.#output.destroy();
  }
}
