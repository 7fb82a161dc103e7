/** The results of one test file, reduced to what a person wants to read. */
import { relative } from 'node:path';
import { inspect } from 'node:util';

export interface Outcome {
  readonly passed: number;
  /** By the file and the names from the outermost suite down. */
  readonly failures: readonly { readonly name: string; readonly error: string }[];
  readonly skips: readonly { readonly name: string; readonly reason: string }[];
}

export interface Finished {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string | undefined;
  readonly skip?: string | boolean | undefined;
  readonly todo?: string | boolean | undefined;
  readonly details: { readonly type?: string | undefined; readonly error?: unknown };
}

export interface TallyOptions {
  /** Number of suites that represent the file itself; 0 in its own process. */
  readonly level?: number;
  /** The package whose absence caused the skip, if it can be installed here. */
  readonly curable?: ((reason: string) => string | undefined) | undefined;
}

const OUTPUT_LINES_KEPT = 40;

/** Counts tests, not suites. A file without any test, or one that dies or does not end, is a failure. */
export class Tally {
  readonly #file: string;
  readonly #options: TallyOptions;
  #passed = 0;
  #isEmpty = true;
  readonly #failures: { name: string; error: string }[] = [];
  readonly #skips: { name: string; reason: string }[] = [];
  /** The error that ended the file's own process: it may only repeat a test's. */
  #death: string | undefined;
  /** The tests and suites that began last, one for each level. */
  readonly #names: string[] = [];
  #output: string[] = [];

  /** `file` is an absolute path. */
  constructor(file: string, options: TallyOptions = {}) {
    this.#file = file;
    this.#options = options;
  }

  started(test: Pick<Finished, 'name' | 'nesting' | 'file'>): void {
    if (this.#isFile(test)) return;
    this.#isEmpty = false;
    this.#names.splice(test.nesting - this.#level, Number.POSITIVE_INFINITY, test.name);
  }

  /** The file, or its process, ended in a way that no test reports. */
  died(error: string): void {
    this.#death ??= error;
  }

  printed(message: string): void {
    this.#output = [...this.#output, ...message.trimEnd().split('\n')].slice(-OUTPUT_LINES_KEPT);
  }

  passed(test: Finished): void {
    const { skip, todo } = test;
    if (this.#isFile(test) || test.details.type === 'suite') return;
    if (skip !== undefined && skip !== false) this.#skipped(test, skip === true ? 'no reason' : skip);
    else if (todo !== undefined && todo !== false) this.#fail(test, 'this test has not been written yet');
    else this.#passed++;
  }

  #skipped(test: Finished, reason: string): void {
    const cure = this.#options.curable?.(reason);
    if (cure === undefined) this.#skips.push({ name: this.#fullName(test), reason });
    else this.#fail(test, `skipped although the set-up installs ${cure} on this host (${reason})`);
  }

  failed(test: Finished): void {
    const error = test.details.error as NodeTestError | undefined;
    // If only something inside has failed, that is reported instead.
    if (error?.failureType === 'subtestsFailed') return;
    if (this.#isFile(test)) this.died(describeError(error));
    else this.#fail(test, describeError(error));
  }

  #fail(test: Finished, error: string): void {
    this.#failures.push({ name: this.#fullName(test), error });
  }

  /** The message of died() or of the process's end. */
  get death(): string | undefined {
    return this.#death;
  }

  get #level(): number {
    return this.#options.level ?? 0;
  }

  /** The process of one file, or its suites among others. */
  #isFile({ name, nesting, file }: Pick<Finished, 'name' | 'nesting' | 'file'>): boolean {
    return this.#level === 0 ? nesting === 0 && name === file : nesting < this.#level;
  }

  /** `path › suite › test` */
  #fullName({ name, nesting }: Finished): string {
    return [relative(process.cwd(), this.#file), ...this.#names.slice(0, nesting - this.#level), name].join(
      ' › ',
    );
  }

  outcome(): Outcome {
    const failures = [...this.#failures];
    if (this.#isEmpty) this.died('this file contains no test');
    if (this.#death !== undefined && failures.length === 0) {
      failures.push({ name: relative(process.cwd(), this.#file), error: this.#death });
    }
    // Output of the file is shown once: with its last failure.
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
