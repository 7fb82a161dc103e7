/** One test file, run by node:test in a process of its own, reduced to what a person wants to read. */
import { relative } from 'node:path';
import { run } from 'node:test';
import { inspect } from 'node:util';
import { patienceMs } from '../server/platform/host-load.ts';

export interface Outcome {
  readonly passed: number;
  /** By the file and the names from the outermost suite down. */
  readonly failures: readonly { readonly name: string; readonly error: string }[];
  readonly skips: readonly { readonly name: string; readonly reason: string }[];
}

export interface TestRunOptions {
  /** A test, or a file, that takes longer fails. */
  readonly timeoutMs: number;
  /** A file that has not ended so long after its last test fails, on a quiet host. Default: a minute. */
  readonly lingerMs?: number;
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
/** Hooks after the last test stop clouds and databases. */
const LINGER_MS = 60_000;
const LEFT_OPEN = 'a server or timer may be left open';

/**
 * Counts tests, not suites. A file without any test, or one that dies or does not end, is a failure.
 * `file` is an absolute path.
 */
export async function runTestFile(file: string, options: TestRunOptions): Promise<Outcome> {
  const timeoutMs = options.timeoutMs + GRACE_MS;
  const deadline = new AbortController();
  // node:test has a deadline for each test, but none for a file.
  const timer = setTimeout(() => {
    deadline.abort(new Error(`did not finish within ${timeoutMs} ms; ${LEFT_OPEN}`));
  }, timeoutMs);
  const { lingerMs = LINGER_MS } = options;
  const open = new OpenTests(file);
  const look = setInterval(() => {
    if (open.quietMs() > patienceMs(lingerMs))
      deadline.abort(new Error(`its tests have ended, and it has not; ${LEFT_OPEN}`));
  }, lingerMs / 10);
  const env = options.env as NodeJS.ProcessEnv;
  const tally = new Tally(file, options.curable);
  const stream = run({ files: [file], timeout: options.timeoutMs, env, signal: deadline.signal });
  stream.on('test:dequeue', ({ name }) => open.began(name));
  stream.on('test:complete', ({ name }) => open.ended(name));
  stream.on('test:start', ({ name, nesting }) => tally.started(name, nesting));
  stream.on('test:pass', (test) => tally.passed(test));
  stream.on('test:fail', (test) => tally.failed(test));
  stream.on('test:stdout', ({ message }) => tally.printed(message));
  stream.on('test:stderr', ({ message }) => tally.printed(message));
  for await (const _ of stream); // drains it: the events above come in the order of the stream
  clearTimeout(timer);
  clearInterval(look);
  return tally.outcome();
}

/** Tests that run at this moment. */
class OpenTests {
  readonly #file: string;
  #count = 0;
  #quietSince: number | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  began(name: string): void {
    if (name === this.#file) return;
    this.#count++;
    this.#quietSince = undefined;
  }

  ended(name: string): void {
    if (name === this.#file) return;
    this.#count--;
    if (this.#count === 0) this.#quietSince = performance.now();
  }

  /** The time since the last test ended, when none runs; 0 before the first. */
  quietMs(): number {
    return this.#quietSince === undefined ? 0 : performance.now() - this.#quietSince;
  }
}

class Tally {
  readonly #file: string;
  readonly #curable: (reason: string) => string | undefined;
  #passed = 0;
  readonly #failures: { name: string; error: string }[] = [];
  readonly #skips: { name: string; reason: string }[] = [];
  /** What the file's own process died of: it may only repeat what a test said. */
  #death: string | undefined;
  /** The tests and suites that began last, one for each level. */
  readonly #names: string[] = [];
  #output: string[] = [];

  constructor(file: string, curable: (reason: string) => string | undefined = () => undefined) {
    this.#file = file;
    this.#curable = curable;
  }

  started(name: string, nesting: number): void {
    this.#names.splice(nesting, Number.POSITIVE_INFINITY, name);
  }

  printed(message: string): void {
    this.#output = [...this.#output, ...message.trimEnd().split('\n')].slice(-OUTPUT_LINES_KEPT);
  }

  passed(test: Finished): void {
    const { skip, todo } = test;
    if (test.details.type === 'suite') return;
    if (skip !== undefined && skip !== false) this.#skipped(test, skip === true ? 'no reason' : skip);
    else if (todo !== undefined && todo !== false) this.#fail(test, 'this test has not been written yet');
    else if (this.#isFile(test)) this.#death = 'this file contains no test';
    else this.#passed++;
  }

  #skipped(test: Finished, reason: string): void {
    const cure = this.#curable(reason);
    if (cure === undefined) this.#skips.push({ name: this.#fullName(test), reason });
    else this.#fail(test, `skipped although the set-up installs ${cure} on this host (${reason})`);
  }

  failed(test: Finished): void {
    const error = test.details.error as NodeTestError | undefined;
    // When only something inside has failed, that is reported instead.
    if (error?.failureType === 'subtestsFailed') return;
    if (this.#isFile(test)) this.#death = describeError(error);
    else this.#fail(test, describeError(error));
  }

  #fail(test: Finished, error: string): void {
    this.#failures.push({ name: this.#fullName(test), error });
  }

  #isFile({ name, nesting, file }: Finished): boolean {
    return nesting === 0 && name === file;
  }

  /** `path › suite › test` */
  #fullName({ name, nesting }: Finished): string {
    return [relative(process.cwd(), this.#file), ...this.#names.slice(0, nesting), name].join(' › ');
  }

  outcome(): Outcome {
    const failures = [...this.#failures];
    if (this.#death !== undefined && failures.length === 0) {
      failures.push({ name: relative(process.cwd(), this.#file), error: this.#death });
    }
    // What the file printed is told once: with its last failure.
    const last = failures.pop();
    if (last !== undefined) failures.push({ ...last, error: [last.error, ...this.#output].join('\n') });
    return { passed: this.#passed, failures, skips: this.#skips };
  }
}

interface NodeTestError {
  readonly failureType?: string;
  readonly cause?: unknown;
  readonly signal?: string | null;
}

function describeError(error: NodeTestError | undefined): string {
  if (error?.signal) return `its process was killed by ${error.signal}`;
  const cause = error?.cause ?? error;
  if (!(cause instanceof Error)) return typeof cause === 'string' ? cause : inspect(cause);
  const frames = (cause.stack ?? '').split('\n').filter((line) => /^\s+at (?!.*node:)/.test(line));
  const deeper = cause.cause === undefined ? [] : [`  cause: ${inspect(cause.cause, { depth: 2 })}`];
  return [`${cause.name}: ${cause.message}`, ...frames.slice(0, 6), ...deeper].join('\n');
}
