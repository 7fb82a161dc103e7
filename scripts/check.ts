/**
 * `npm test` and its kin: checks that go on after a failure, so that all problems are seen.
 *
 *   npm test                       minutes: types, lint, style, files that share a process, journeys
 *   npm test -- --changed          only what differs from main reaches; changed-tests.ts has the rule
 *   npm test -- server/storage     only the test files under, or named like, that path
 *   npm run test:all               everything but the long ones: first all of `npm test`, then the rest
 *   npm run test:faults            only the fault tests, at their full number of rounds
 *   npm run test:long              only the tests that take minutes each; needs root for some
 *
 * The last line is `N passed, N failed, N skipped`: tests, plus one failure for each other check that failed.
 * A test that is skipped for want of a package fails where the set-up could have installed that.
 * In `npm test` and test:all each test file that failed runs once more, alone, unless more than
 * MAX_FLAKY_FILES did. One that passes then counts as passed and is reported as flaky. It is a fault all the
 * same: mend it first.
 */
import { execFile } from 'node:child_process';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { hostLoad } from '../server/platform/host/host-facts.ts';
import { repositoryFiles } from '../test/tidy/source-files.ts';
import { findChange, testsReached } from './changed-tests.ts';
import {
  FAULTS,
  filesOf,
  isQuick,
  type Job,
  jobsOf,
  LONG,
  SLOW,
  SLOW_FILES,
  STEPS,
  type Step,
} from './check-steps.ts';
import { curablePackage } from './installed.ts';
import { Processors, RunLoad } from './run-load.ts';
import { runTestFiles } from './test-run.ts';
import type { Outcome } from './test-tally.ts';

/** Files at a time, for two processors: tests also wait, for a guest, a disk or a kill. */
const SLOTS = 3;
/** The maximum, while processors are idle. */
const MOST_SLOTS = 6;
const LOOK_MS = 2000;
/** Starting another file needs processors that were idle since the last check, and memory. */
const IDLE_PROCESSORS = 0.4;
const FREE_BYTES = 4 * 2 ** 30;
/** On a loaded machine a few files fail by accident; more than this is no accident. */
const MAX_FLAKY_FILES = 5;
/** Files named after a step that took long. */
const SLOWEST = 5;
const SLOW_MS = 20_000;

const ROOT = dirname(import.meta.dirname);

/** The outcome of one file or one command. */
interface Result extends Outcome {
  readonly step: Step;
  readonly file: string;
  readonly ms: number;
}

/** Environment of the tests: settings of the person who runs them must not affect the results. */
function testEnvironment(isFull: boolean, hasAllCases: boolean): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('CLOUDLET_'));
  // Otherwise, each test file's process would strip the types of all its imports again.
  const NODE_COMPILE_CACHE = join(ROOT, 'node_modules/.cache/node');
  const TEST_CASES = hasAllCases ? 'all' : 'some';
  const FAULTS = isFull ? 'full' : 'fast';
  return { NODE_COMPILE_CACHE, TEST_CASES, ...Object.fromEntries(kept), FAULTS };
}

function runCommand([program = '', ...args]: readonly string[], label: string): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(join(ROOT, 'node_modules/.bin', program), args, { maxBuffer: 2 ** 26 }, (error, out, err) => {
      const failures = error === null ? [] : [{ name: label, error: out + err || error.message }];
      resolve({ passed: 0, failures, skips: [] });
    });
  });
}

interface CheckKind {
  /** Fault tests with their full number of rounds. */
  readonly isFull: boolean;
  /** Property tests with all their cases. */
  readonly hasAllCases: boolean;
  /** The previous set-up. */
  readonly purpose: 'test' | 'all';
}

class Check {
  readonly #env: Record<string, string | undefined>;

  readonly #purpose: 'test' | 'all';

  constructor({ isFull, hasAllCases, purpose }: CheckKind) {
    this.#env = testEnvironment(isFull, hasAllCases);
    this.#purpose = purpose;
  }

  /** Runs all steps, which share the slots, and reports each step when it is done. */
  async runAll(steps: ReadonlyMap<Step, readonly string[]>): Promise<Result[]> {
    const part = (isMeant: (step: Step, file: string) => boolean) =>
      [...steps].flatMap(([step, files]) => {
        return jobsOf(
          step,
          files.filter((file) => isMeant(step, file)),
        );
      });
    const waiting = [...part(isQuick), ...part((step, file) => !isQuick(step, file))];
    const running: Step[] = [];
    const results: Result[] = [];
    const ended = (result: Result) => {
      results.push(result);
      if (result.failures.length > 0) tellEarly(result);
      const own = results.filter(({ step }) => step === result.step);
      if (own.length === steps.get(result.step)?.length) report(result.step.label, own);
    };
    /** False: no file that may run now is left. */
    const runNext = async (): Promise<boolean> => {
      const isFree = (step: Step) => running.filter((each) => each === step).length < step.concurrency;
      const next = waiting.findIndex(({ step }) => isFree(step));
      const [job] = next < 0 ? [] : waiting.splice(next, 1);
      if (job === undefined) return false;
      running.push(job.step);
      await this.run(job, ended);
      running.splice(running.indexOf(job.step), 1);
      return true;
    };
    const lane = async (): Promise<void> => {
      while (await runNext());
    };
    const more: Promise<boolean>[] = [];
    const processors = new Processors();
    const timer = setInterval(() => {
      const isIdle = processors.idle() >= IDLE_PROCESSORS && process.availableMemory() >= FREE_BYTES;
      if (isIdle && running.length < MOST_SLOTS) more.push(runNext());
    }, LOOK_MS);
    await Promise.all(Array.from({ length: SLOTS }, lane));
    clearInterval(timer);
    await Promise.all(more);
    return results;
  }

  async run({ step, files }: Job, ended: (result: Result) => void): Promise<void> {
    const { command, timeoutMs } = step;
    if (command !== undefined) {
      const startMs = performance.now();
      const outcome = await runCommand(command, step.label);
      return ended({ ...outcome, step, file: step.label, ms: performance.now() - startMs });
    }
    // A run is itself the load of SLOTS or more files; additional load is not counted against a
    // file.
    const options = {
      timeoutMs: timeoutMs * Math.max(1, hostLoad() / SLOTS),
      env: this.#env,
      curable: (reason: string) => curablePackage(reason, this.#purpose),
    };
    const paths = files.map((file) => join(ROOT, file));
    await runTestFiles(paths, options, ({ file, ...outcome }) =>
      ended({ ...outcome, step, file: relative(ROOT, file) }),
    );
  }

  /** Each failed file is run again, alone. Returns the final results. */
  async retry(results: readonly Result[]): Promise<Result[]> {
    const failed = results.filter(({ step, failures }) => step.patterns && failures.length > 0);
    const counting = new Map(results.map((result) => [result.file, result]));
    if (failed.length > MAX_FLAKY_FILES) {
      console.log(`${failed.length} files failed, too many to be flaky: none is retried`);
      return [...results];
    }
    for (const { step, file } of failed) {
      const again: Result[] = [];
      await this.run({ step, files: [file] }, (result) => again.push(result));
      report('again', again);
      if (again.some(({ failures }) => failures.length > 0)) continue;
      for (const result of again) counting.set(file, result);
      console.log(`  flaky: ${file} failed with the others and passed when run alone`);
    }
    return [...counting.values()];
  }
}

function total(results: readonly Outcome[]): string {
  const passed = results.reduce((sum, { passed }) => sum + passed, 0);
  const failed = results.reduce((sum, { failures }) => sum + failures.length, 0);
  const skipped = results.reduce((sum, { skips }) => sum + skips.length, 0);
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ');
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(0)} s`;

/** A run that is stopped before its step is done has already reported its failures. */
function tellEarly({ file, failures }: Result): void {
  console.log(`failed: ${file}: ${failures.map(({ name }) => name.split(' › ').at(-1)).join('; ')}`);
}

function report(label: string, results: readonly Result[]): void {
  const failures = results.flatMap(({ failures }) => failures);
  const skips = results.flatMap(({ skips }) => skips);
  const verdict = failures.length > 0 ? 'FAILED ' : 'ok ';
  const ms = results.reduce((sum, { ms }) => sum + ms, 0);
  console.log(`${label.padEnd(12)} ${verdict}${total(results)} in ${results.length} files, ${seconds(ms)}`);
  const slow = results.filter(({ ms }) => ms >= SLOW_MS).sort((a, b) => b.ms - a.ms);
  const shown = slow.slice(0, SLOWEST).map(({ file, ms }) => `${file} ${seconds(ms)}`);
  if (shown.length > 0) console.log(`  slowest: ${shown.join(', ')}`);
  for (const { name, error } of failures) console.log(`  failed: ${name}\n${indent(error)}`);
  for (const { name, reason } of skips) console.log(`  skipped: ${name} (${reason})`);
}

/** The files of each step, in the order of their start. */
type Plan = ReadonlyMap<Step, readonly string[]>;

function plan(options: CheckOptions, filters: readonly string[]): Plan {
  if (options.faults) return planOf([{ ...FAULTS, timeoutMs: 3_600_000 }], (step) => filesOf(step, filters));
  if (options.long) return planOf([SLOW, LONG], (step) => filesOf(step, filters));
  if (filters.length > 0) return planOf(STEPS, (step) => filesOf(step, filters));
  const all = planOf(STEPS, (step) => filesOf(step, []).filter((file) => !SLOW_FILES.has(file)));
  if (options.all) return all;
  const quick = planOf(STEPS, (step) => (all.get(step) ?? []).filter((file) => isQuick(step, file)));
  return options.changed ? planChanged(all, quick) : quick;
}

function planOf(steps: readonly Step[], files: (step: Step) => readonly string[]): Plan {
  return new Map(steps.map((step) => [step, files(step)]));
}

function planChanged(all: Plan, quick: Plan): Plan {
  const change = findChange(ROOT);
  const isQuick = (file: string) => [...quick.values()].some((files) => files.includes(file));
  const tests = [...all].flatMap(([{ command }, files]) => (command === undefined ? files : []));
  const sources = repositoryFiles(ROOT);
  const reached = new Set(testsReached(change, { sources, tests, isQuick }));
  console.log(
    `${change.files.length} files differ from ${change.base}; ${reached.size} of ${tests.length} test files are reached`,
  );
  const isMeant = ({ command, label }: Step, file: string) =>
    command !== undefined || label === 'tidy' || reached.has(file);
  return planOf([...all.keys()], (step) => (all.get(step) ?? []).filter((file) => isMeant(step, file)));
}

interface CheckOptions {
  readonly all: boolean;
  readonly changed: boolean;
  readonly faults: boolean;
  readonly long: boolean;
}

async function main(): Promise<number> {
  process.chdir(ROOT);
  const flag = { type: 'boolean', default: false } as const;
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: { all: flag, changed: flag, faults: flag, long: flag },
  });
  const isOneStep = options.faults || options.long || positionals.length > 0;
  const check = new Check({
    isFull: options.faults,
    hasAllCases: options.all || isOneStep,
    purpose: options.all || options.faults || options.long ? 'all' : 'test',
  });
  const load = new RunLoad();
  const first = await check.runAll(plan(options, positionals));
  if (first.length === 0) throw new Error(`no test file matches ${positionals.join(' ')}`);
  const results = isOneStep ? first : await check.retry(first);
  console.log(`\n${load.tell()}`);
  console.log(total(results));
  return results.some(({ failures }) => failures.length > 0) ? 1 : 0;
}

// Leftovers of a test in this process must not keep the check from ending.
process.exit(
  await main().catch((error: unknown) => {
    console.error(`check: ${error instanceof Error ? error.message : String(error)}`);
    return 2;
  }),
);
