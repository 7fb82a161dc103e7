/**
 * One node:test run over a list of files, each in its own process, reduced to what a person wants to read.
 */
import { run } from 'node:test';
import { inspect } from 'node:util';

export interface Failure {
  /** Path of the test file, and the names from the outermost suite down. */
  readonly name: string;
  readonly error: string;
  /** The file that was run; a suite that several run is in another. */
  readonly ran: string;
}

export interface Skip {
  readonly name: string;
  readonly reason: string;
}

export interface TestOutcome {
  readonly passed: number;
  readonly failures: readonly Failure[];
  readonly skips: readonly Skip[];
  /** Seconds by path of the test file, the longest first. */
  readonly files: readonly (readonly [string, number])[];
}

export interface TestRunOptions {
  readonly files: readonly string[];
  /** Test files at a time. */
  readonly concurrency: number;
  /** Shared with other runs at the same time: a file waits for one of these, and keeps it until it ends. */
  readonly slots?: Slots;
  /** Of all that wait for a slot the lowest goes first. Default 0. */
  readonly rank?: number;
  /** A file that takes longer fails. */
  readonly timeoutMs: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The package that would have kept a test from being skipped for this reason, if it can be had here. */
  readonly curable?: (reason: string) => string | undefined;
}

interface Finished {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string | undefined;
  readonly skip?: string | boolean | undefined;
  readonly todo?: string | boolean | undefined;
  readonly details: { readonly type?: string | undefined; readonly error?: unknown };
}

const OUTPUT_LINES_KEPT = 40;

/** A test that takes too long is named first; then its process, which may never end by itself, is ended. */
const GRACE_MS = 2000;

interface Waiting {
  readonly rank: number;
  readonly go: () => void;
}

/** Room for so many test files at a time, over several runs. */
export class Slots {
  #free: number;
  readonly #waiting: Waiting[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves when there is room, the lowest rank first, and those of one rank in the order they came. */
  async take(rank: number): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((go) => this.#waiting.push({ rank, go }));
  }

  give(): void {
    const [next] = this.#waiting.toSorted((a, b) => a.rank - b.rank);
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    next.go();
  }
}

/**
 * Runs the files and counts tests, not suites. A file without any test, or one that dies, counts as a
 * failure.
 */
export async function runTests(options: TestRunOptions): Promise<TestOutcome> {
  const tally = new Tally(options.curable);
  const seconds: [string, number][] = [];
  const waiting = [...options.files];
  const { slots = new Slots(options.concurrency), rank = 0 } = options;
  const lane = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      await slots.take(rank);
      const began = performance.now();
      try {
        await runFile(file, options, tally);
      } finally {
        slots.give();
      }
      seconds.push([file, (performance.now() - began) / 1000]);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, lane));
  return { ...tally.outcome(), files: seconds.sort(([, a], [, b]) => b - a) };
}

/** A run of its own, because node:test has a deadline for each test but none for a file that does not end. */
async function runFile(file: string, { timeoutMs, env }: TestRunOptions, tally: Tally): Promise<void> {
  const deadline = new AbortController();
  const timer = setTimeout(() => {
    deadline.abort(
      new Error(`did not end within ${timeoutMs + GRACE_MS} ms; is a server or timer left open?`),
    );
  }, timeoutMs + GRACE_MS);
  const stream = run({
    files: [file],
    timeout: timeoutMs,
    env: env as NodeJS.ProcessEnv,
    signal: deadline.signal,
  });
  stream.on('test:start', ({ name, nesting, file }) => tally.started(file, nesting, name));
  stream.on('test:pass', (test) => tally.passed(test, file));
  stream.on('test:fail', (test) => tally.failed(test, file));
  stream.on('test:stdout', ({ file, message }) => tally.printed(file, message));
  stream.on('test:stderr', ({ file, message }) => tally.printed(file, message));
  for await (const _ of stream); // drains it: the events above come in the order of the stream
  clearTimeout(timer);
}

class Tally {
  #passed = 0;
  readonly #failures: { name: string; file: string; error: string; ran: string; isFile: boolean }[] = [];
  readonly #skips: Skip[] = [];
  readonly #names = new Map<string, string[]>();
  readonly #output = new Map<string, string[]>();
  readonly #curable: (reason: string) => string | undefined;

  constructor(curable: (reason: string) => string | undefined = () => undefined) {
    this.#curable = curable;
  }

  started(file: string | undefined, nesting: number, name: string): void {
    const names = this.#names.get(file ?? '') ?? [];
    names.length = nesting;
    names[nesting] = name;
    this.#names.set(file ?? '', names);
  }

  printed(file: string, message: string): void {
    const lines = this.#output.get(file) ?? [];
    lines.push(...message.replace(/\n$/, '').split('\n'));
    this.#output.set(file, lines.slice(-OUTPUT_LINES_KEPT));
  }

  passed(test: Finished, ran: string): void {
    if (test.details.type === 'suite') return;
    if (test.skip !== undefined && test.skip !== false) {
      this.#skipped(test, ran, typeof test.skip === 'string' ? test.skip : 'no reason');
    } else if (test.todo !== undefined && test.todo !== false) {
      this.#fail(test, ran, 'a test that is still to be written');
    } else if (test.nesting === 0 && test.name === test.file) {
      this.#fail(test, ran, 'this file contains no test');
    } else {
      this.#passed++;
    }
  }

  #skipped(test: Finished, ran: string, reason: string): void {
    const cure = this.#curable(reason);
    if (cure === undefined) this.#skips.push({ name: this.#fullName(test), reason });
    else this.#fail(test, ran, `skipped, though the set-up installs ${cure} on this host (${reason})`);
  }

  failed(test: Finished, ran: string): void {
    // Of a suite or test that failed only because of what is inside it, the inside is reported.
    const error = test.details.error as { failureType?: string; cause?: unknown } | undefined;
    if (error?.failureType === 'subtestsFailed') return;
    this.#fail(test, ran, describeError(error));
  }

  #fail(test: Finished, ran: string, error: string): void {
    const isFile = test.nesting === 0 && test.name === test.file;
    this.#failures.push({ name: this.#fullName(test), file: test.file ?? '', error, ran, isFile });
  }

  /** `path › suite › test`. Names of the outer suites come from the last start event of each level. */
  #fullName(test: Finished): string {
    if (test.name === test.file) return relativePath(test.file);
    const outer = (this.#names.get(test.file ?? '') ?? []).slice(0, test.nesting);
    return [relativePath(test.file ?? ''), ...outer, test.name].join(' › ');
  }

  outcome(): Omit<TestOutcome, 'files'> {
    // A file's own failure ("exit code 1") only repeats what its tests already said.
    const told = new Set(this.#failures.filter((failure) => !failure.isFile).map(({ file }) => file));
    const failures = this.#failures.filter((failure) => !failure.isFile || !told.has(failure.file));
    // What a file printed is told once: with its last failure.
    const last = new Map(failures.map((failure) => [failure.file, failure]));
    const described = failures.map((failure) => {
      const output = last.get(failure.file) === failure ? (this.#output.get(failure.file) ?? []) : [];
      const { name, ran } = failure;
      return { name, error: [failure.error, ...output].join('\n'), ran: relativePath(ran) };
    });
    return { passed: this.#passed, failures: described, skips: this.#skips };
  }
}

function relativePath(file: string): string {
  const root = `${process.cwd()}/`;
  return file.startsWith(root) ? file.slice(root.length) : file;
}

function describeError(error: { cause?: unknown; signal?: string | null } | undefined): string {
  const cause = error?.cause ?? error;
  // Of a file whose process ended by itself.
  if (error?.signal) return `its process was ended by ${error.signal}`;
  if (!(cause instanceof Error)) return typeof cause === 'string' ? cause : inspect(cause);
  const frames = (cause.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const ours = frames.filter((line) => !line.includes('node:')).slice(0, 6);
  const deeper = cause.cause === undefined ? [] : [`  cause: ${inspect(cause.cause, { depth: 2 })}`];
  return [`${cause.name}: ${cause.message}`, ...ours, ...deeper].join('\n');
}
