/** Test files, run by node:test: one in its own process, or many in one. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { patienceMs } from '../server/platform/host/host-facts.ts';
import { type Finished, type Outcome, Tally } from './test-tally.ts';

export interface TestRunOptions {
  /** A test, or a file, that takes longer fails. */
  readonly timeoutMs: number;
  /** On an idle host, a file that has not ended this long after its last test fails. Default: a minute. */
  readonly lingerMs?: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The package whose absence caused the skip, if it can be installed here. */
  readonly curable?: (reason: string) => string | undefined;
}

export interface FileOutcome extends Outcome {
  /** An absolute path. */
  readonly file: string;
  readonly ms: number;
}

/** A test that takes too long is named first; then its process, which may never end by itself, is ended. */
const GRACE_MS = 2000;
/** Hooks after the last test stop clouds and databases. */
const LINGER_MS = 60_000;
const LEFT_OPEN = 'a server or timer may be left open';

/** A process that still runs this long after it was told to end is killed. */
const KILL_MS = 5000;
const LOOK_MS = 1000;
/** Output printed at a file's end comes through another pipe than its results. */
const OUTPUT_MS = 50;

const DRIVER = fileURLToPath(new URL('./test-process.ts', import.meta.url));
/** The suites that test-process.ts puts around each file. */
const DRIVER_LEVEL = 2;

/**
 * Runs test files, several in one process. If one hangs or ends the process, it fails, and the following ones
 * get a new process. `ended` is called for each file at once.
 */
export async function runTestFiles(
  files: readonly string[],
  options: TestRunOptions,
  ended: (outcome: FileOutcome) => void,
): Promise<void> {
  let left = [...files];
  while (left.length > 0) {
    const run = new ProcessRun(left, options);
    const outcomes = await run.toItsEnd(ended);
    left = left.filter((file) => !outcomes.has(file));
  }
}

type Named = { readonly name: string; readonly nesting: number };

/** A running file. */
class FileRun {
  readonly file: string;
  readonly tally: Tally;
  readonly #startMs = performance.now();
  #openTests = 0;
  #quietSinceMs: number | undefined;

  constructor(file: string, tally: Tally) {
    this.file = file;
    this.tally = tally;
  }

  began(): void {
    this.#openTests++;
    this.#quietSinceMs = undefined;
  }

  completed(): void {
    this.#openTests--;
    if (this.#openTests === 0) this.#quietSinceMs = performance.now();
  }

  /** The problem with its duration; node:test has a time limit for each test, but none for a file. */
  fault({ timeoutMs, lingerMs = LINGER_MS }: TestRunOptions): string | undefined {
    const now = performance.now();
    const deadlineMs = timeoutMs + GRACE_MS;
    if (now - this.#startMs > deadlineMs) return `did not finish within ${deadlineMs} ms`;
    const quietMs = this.#quietSinceMs === undefined ? 0 : now - this.#quietSinceMs;
    return quietMs > patienceMs(lingerMs) ? 'its tests have ended, and it has not' : undefined;
  }

  end(): FileOutcome {
    return { ...this.tally.outcome(), file: this.file, ms: performance.now() - this.#startMs };
  }
}

/** One process of node:test. */
class ProcessRun {
  readonly #files: readonly string[];
  readonly #options: TestRunOptions;
  readonly #isShared: boolean;
  readonly #runs = new Map<string, FileRun>();
  readonly #ended = new Set<string>();
  readonly #pending: Promise<void>[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), 'cloudlet-test-run-'));
  /** The running file, and the one whose results are arriving. */
  #running: FileRun | undefined;
  #reported: FileRun | undefined;
  /** The running file, and those that have just ended. */
  readonly #printing = new Set<FileRun>();
  /** How the process ended, if no test reports it. */
  readonly #process: Tally;

  constructor(files: readonly string[], options: TestRunOptions) {
    this.#files = files;
    this.#options = options;
    this.#isShared = files.length > 1;
    this.#process = new Tally(DRIVER);
  }

  /** Returns the files that this process completed: at least one. */
  async toItsEnd(tell: (outcome: FileOutcome) => void): Promise<ReadonlySet<string>> {
    const [first = ''] = this.#files;
    if (!this.#isShared) this.#reported = this.#begin(first);
    const deadline = new AbortController();
    const look = setInterval(() => {
      this.#readNote();
      const fault = this.#running?.fault(this.#options);
      if (fault === undefined || deadline.signal.aborted) return;
      deadline.abort(new Error(`${fault}; ${LEFT_OPEN}`));
      setTimeout(() => this.#kill(), KILL_MS).unref();
    }, LOOK_MS);
    const TEST_FILES = JSON.stringify(this.#files);
    const stream = run({
      files: this.#isShared ? [DRIVER] : [first],
      timeout: this.#options.timeoutMs,
      env: { ...this.#options.env, TEST_FILES, TEST_NOTE: this.#notePath } as NodeJS.ProcessEnv,
      signal: deadline.signal,
    });
    this.#listen(stream, tell);
    for await (const _ of stream); // drains it: the events arrive in the order of the stream
    clearInterval(look);
    this.#readNote();
    this.#endProcess(tell);
    await Promise.all(this.#pending);
    rmSync(this.#directory, { recursive: true });
    return this.#ended;
  }

  #listen(stream: ReturnType<typeof run>, tell: (outcome: FileOutcome) => void): void {
    stream.on('test:dequeue', (test) => {
      if (this.#isFile(test)) this.#running = this.#runs.get(test.name) ?? this.#begin(test.name);
      else if (!this.#isProcess(test)) this.#running?.began();
    });
    stream.on('test:complete', (test) => {
      if (!this.#isFile(test) && !this.#isProcess(test)) this.#running?.completed();
    });
    stream.on('test:start', (test) => {
      if (this.#isFile(test)) this.#reported = this.#runs.get(test.name);
      this.#reported?.tally.started(test);
    });
    const finished = (test: Finished, verdict: 'passed' | 'failed') => {
      if (this.#isShared && this.#isProcess(test)) this.#process[verdict](test);
      else this.#reported?.tally[verdict](test);
      if (this.#isFile(test)) this.#end(test.name, tell);
    };
    stream.on('test:pass', (test) => finished(test, 'passed'));
    stream.on('test:fail', (test) => finished(test, 'failed'));
    const printed = ({ message }: { message: string }) => {
      for (const { tally } of this.#printing) tally.printed(message);
    };
    stream.on('test:stdout', printed);
    stream.on('test:stderr', printed);
  }

  get #notePath(): string {
    return join(this.#directory, 'note');
  }

  #readNote(): number | undefined {
    if (!this.#isShared) return undefined;
    try {
      const [pid = '', file = ''] = readFileSync(this.#notePath, 'utf8').split(/ (.*)/);
      if (file !== '' && !this.#runs.has(file)) this.#begin(file);
      return Number(pid);
    } catch {
      // Its first file has not begun.
      return undefined;
    }
  }

  /** Ends a process whose only thread is too busy to handle a request to end. */
  #kill(): void {
    const pid = this.#readNote();
    try {
      if (pid !== undefined && this.#running !== undefined) process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }

  /** The outer suite that represents one of several files. */
  #isFile({ name, nesting }: Named): boolean {
    return this.#isShared && nesting === 0 && name !== DRIVER;
  }

  #isProcess({ name, nesting }: Named): boolean {
    return nesting === 0 && name === (this.#isShared ? DRIVER : this.#files[0]);
  }

  #begin(file: string): FileRun {
    const level = this.#isShared ? DRIVER_LEVEL : 0;
    const began = new FileRun(file, new Tally(file, { level, curable: this.#options.curable }));
    this.#runs.set(file, began);
    this.#running = began;
    this.#printing.add(began);
    return began;
  }

  #end(file: string, tell: (outcome: FileOutcome) => void): void {
    const ended = this.#runs.get(file);
    if (ended === undefined || this.#ended.has(file)) return;
    this.#ended.add(file);
    if (this.#running === ended) this.#running = undefined;
    const told = sleep(OUTPUT_MS).then(() => {
      this.#printing.delete(ended);
      tell(ended.end());
    });
    this.#pending.push(told);
  }

  /**
   * A crash of the process is attributed to the file that was running; or else to the next one, or
   * the last.
   */
  #endProcess(tell: (outcome: FileOutcome) => void): void {
    const death = this.#process.death;
    const next = this.#files.find((file) => !this.#ended.has(file));
    const file = this.#running?.file ?? next;
    if (file === undefined) {
      const last = this.#files.at(-1) ?? '';
      const name = `the process of ${this.#files.length} files up to ${last}`;
      if (death !== undefined)
        tell({ file: last, ms: 0, passed: 0, failures: [{ name, error: death }], skips: [] });
      return;
    }
    const ended = this.#runs.get(file) ?? this.#begin(file);
    if (this.#isShared) ended.tally.died(death ?? 'this file ended the process that it shares with others');
    this.#end(file, tell);
  }
}
