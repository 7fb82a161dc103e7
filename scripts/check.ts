/**
 * `npm test`: every check there is, going on after a failure so that all problems are seen.
 *
 *   npm test                       everything
 *   npm test -- server/storage     only the test files under, or named like, that path
 *   npm run test:faults            only the fault tests, at their full number of rounds
 *   npm run test:long              only the tests that take minutes; needs root for some
 *
 * The last line is `N passed, N failed, N skipped`: tests, plus one failure for each other check that failed.
 * A test that is skipped for want of a package fails where the set-up could have installed that.
 * In a whole run each test file that failed runs once more, alone, unless more than MAX_FLAKY_FILES did. One
 * that passes then counts as passed and is reported as flaky. It is a fault all the same: mend it first.
 */
import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { hostLoad } from '../server/platform/host-load.ts';
import { curablePackage } from './installed.ts';
import { type Outcome, runTestFile } from './test-run.ts';

interface Step {
  readonly label: string;
  /** Globs that find the test files. */
  readonly patterns?: readonly string[];
  /** A command instead. */
  readonly command?: readonly string[];
  /** Test files at a time. */
  readonly concurrency: number;
  readonly timeoutMs: number;
}

const command = (label: string, ...command: readonly string[]): Step => ({
  label,
  command,
  concurrency: 1,
  timeoutMs: 300_000,
});
const tests = (label: string, concurrency: number, ...patterns: readonly string[]): Step => ({
  label,
  patterns,
  concurrency,
  // The longest take 2 minutes beside the others.
  timeoutMs: 600_000,
});

const FAULTS = tests('faults', 2, 'test/faults/**/*.test.ts');
const LONG = { ...tests('long', 1, 'test/long/**/*.test.ts'), timeoutMs: 3_600_000 };
/**
 * Left out of a whole run, and part of test:long: each takes a minute or more there, and has a shorter
 * neighbour that stays.
 */
const SLOW_FILES: ReadonlySet<string> = new Set(
  [
    'acceptance/accounts-commands',
    'acceptance/cli-files',
    'acceptance/console-large-uploads',
    'acceptance/console-operator',
    'acceptance/console-s3',
    'acceptance/console-uploads',
    'acceptance/databases-hosts',
    'acceptance/databases-unread-dumps',
    'acceptance/guides-machines',
    'acceptance/http-lifecycle',
    'acceptance/mongodb-neighbours',
    'acceptance/recovery-drill',
    'acceptance/recovery-encryption',
    'acceptance/recovery-gap',
    'acceptance/recovery-keys',
    'acceptance/recovery-machines',
    'acceptance/recovery-memory',
    'acceptance/recovery-moments',
    'acceptance/recovery-one-machine',
    'acceptance/recovery-one-object-load',
    'acceptance/recovery-overlays',
    'acceptance/recovery-s3',
    'acceptance/recovery-whole',
    'acceptance/start-signals',
    'acceptance/vms-addresses',
    'acceptance/vms-own-users',
    'acceptance/vms-port-cookies',
    'acceptance/vms-private-network',
    'acceptance/vms-programs',
    'acceptance/vms-sshd',
    'faults/damage',
    'faults/database-servers-disk-full',
    'faults/database-servers-far-over',
    'faults/database-servers-kill',
    'faults/database-servers-trouble',
    'faults/databases-disk-full',
    'faults/disk-full',
    'faults/kill-after-answer',
    'faults/power-loss-files',
    'faults/recovery-drill-kill-late',
    'faults/recovery-kill',
    'faults/recovery-logs-target',
    'faults/recovery-object-kill',
    'faults/vm-disk-full',
  ].map((name) => `test/${name}.test.ts`),
);
const SLOW = tests('slow', 2, ...SLOW_FILES);

/** The quick ones first; then those with the longest files, so that no processor idles in the end. */
const STEPS: readonly Step[] = [
  command('type check', 'tsc', '-p', '.'),
  command('lint', 'biome', 'check', '--error-on-warnings', '--colors=off', '--max-diagnostics=100'),
  tests('tidy', 2, 'test/tidy.test.ts', 'test/tidy/**/*.test.ts'),
  FAULTS,
  tests('acceptance', 6, 'test/acceptance/**/*.test.ts'),
  tests('unit', 6, '{server,sdk,cli,console,scripts,bench,test/harness}/**/*.test.ts'),
];

/** Files at a time, for two processors: tests also wait, for a guest, a disk or a kill. */
const SLOTS = 3;
/** The maximum, while processors idle all the same. */
const MOST_SLOTS = 6;
const LOOK_MS = 2000;
/** One more file needs processors that idled since the last look, and memory. */
const IDLE_PROCESSORS = 0.4;
const FREE_BYTES = 4 * 2 ** 30;
/** A loaded machine hits a few files by accident; more than this is no accident. */
const MAX_FLAKY_FILES = 5;
/** Files named after a step that took long. */
const SLOWEST = 5;
const SLOW_MS = 20_000;

const ROOT = dirname(import.meta.dirname);

/** What one file, or one command, came to. */
interface Result extends Outcome {
  readonly step: Step;
  readonly file: string;
  readonly ms: number;
}

/** What the tests see: no setting of the person who runs them may change what they find. */
function testEnvironment(isFull: boolean): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('CLOUDLET_'));
  // Each test file is a process that would strip the types of all it imports anew.
  const NODE_COMPILE_CACHE = join(ROOT, 'node_modules/.cache/node');
  return { NODE_COMPILE_CACHE, ...Object.fromEntries(kept), FAULTS: isFull ? 'full' : 'fast' };
}

function filesOf({ label, patterns }: Step, filters: readonly string[]): string[] {
  if (patterns === undefined) return filters.length === 0 ? [label] : [];
  const files = globSync([...patterns], { cwd: ROOT }).sort();
  const wanted = filters.map((filter) => filter.replace(/^\.?\/+/, ''));
  return filters.length === 0 ? files : files.filter((file) => wanted.some((part) => file.includes(part)));
}

function runCommand(label: string, [program = '', ...args]: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(join(ROOT, 'node_modules/.bin', program), args, { maxBuffer: 2 ** 26 }, (error, out, err) => {
      const failures = error === null ? [] : [{ name: label, error: out + err || error.message }];
      resolve({ passed: 0, failures, skips: [] });
    });
  });
}

class Processors {
  #idleMs = idleMs();
  #atMs = performance.now();

  /** How many idled since the last look, on average. One that waits for a disk does not. */
  idle(): number {
    const [idle, at] = [idleMs(), performance.now()];
    const processors = (idle - this.#idleMs) / (at - this.#atMs);
    [this.#idleMs, this.#atMs] = [idle, at];
    return processors;
  }
}

const idleMs = () => cpus().reduce((sum, { times }) => sum + times.idle, 0);

class Check {
  readonly #env: Record<string, string | undefined>;

  constructor({ isFull }: { isFull: boolean }) {
    this.#env = testEnvironment(isFull);
  }

  /** Runs all steps, which share the slots, and tells of each step when it is done. */
  async runAll(steps: ReadonlyMap<Step, readonly string[]>): Promise<Result[]> {
    const waiting = [...steps].flatMap(([step, files]) => files.map((file) => ({ step, file })));
    const running: Step[] = [];
    const results: Result[] = [];
    /** False: nothing is left that may run now. */
    const runNext = async (): Promise<boolean> => {
      const isFree = (step: Step) => running.filter((each) => each === step).length < step.concurrency;
      const next = waiting.findIndex(({ step }) => isFree(step));
      const [job] = next < 0 ? [] : waiting.splice(next, 1);
      if (job === undefined) return false;
      running.push(job.step);
      const result = await this.run(job.step, job.file);
      results.push(result);
      running.splice(running.indexOf(job.step), 1);
      if (result.failures.length > 0) tellEarly(result);
      const own = results.filter(({ step }) => step === job.step);
      if (own.length === steps.get(job.step)?.length) report(job.step.label, own);
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

  async run(step: Step, file: string): Promise<Result> {
    const { command, timeoutMs } = step;
    const startMs = performance.now();
    // A run is the load of SLOTS files or more itself; what others add is not held against a file.
    const options = {
      timeoutMs: timeoutMs * Math.max(1, hostLoad() / SLOTS),
      env: this.#env,
      curable: curablePackage,
    };
    const outcome = await (command ? runCommand(file, command) : runTestFile(join(ROOT, file), options));
    return { ...outcome, step, file, ms: performance.now() - startMs };
  }

  /** Each file that failed gets a second try, alone. Returns the results that count. */
  async retry(results: readonly Result[]): Promise<Result[]> {
    const failed = results.filter(({ step, failures }) => step.patterns && failures.length > 0);
    const counting = new Map(results.map((result) => [result.file, result]));
    if (failed.length > MAX_FLAKY_FILES) {
      console.log(`${failed.length} files failed, too many to be flaky: none is retried`);
      return [...results];
    }
    for (const { step, file } of failed) {
      const again = await this.run(step, file);
      report('again', [again]);
      if (again.failures.length > 0) continue;
      counting.set(file, again);
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

/** A run that is ended before its step is done has told of its failures all the same. */
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

async function main(): Promise<number> {
  process.chdir(ROOT);
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { faults: { type: 'boolean' }, long: { type: 'boolean' } },
  });
  const isFull = values.faults === true;
  const isWhole = !isFull && !values.long && positionals.length === 0;
  const steps = isFull ? [{ ...FAULTS, timeoutMs: 3_600_000 }] : values.long ? [SLOW, LONG] : STEPS;
  const isLeftOut = (file: string) => isWhole && SLOW_FILES.has(file);
  const files = new Map(
    steps.map((step) => [step, filesOf(step, positionals).filter((file) => !isLeftOut(file))]),
  );
  const check = new Check({ isFull });
  const first = await check.runAll(files);
  if (first.length === 0) throw new Error(`no test file matches ${positionals.join(' ')}`);
  const results = isWhole ? await check.retry(first) : first;
  console.log(`\n${total(results)}`);
  return results.some(({ failures }) => failures.length > 0) ? 1 : 0;
}

// A test that left something behind in this process must not keep the check from ending.
process.exit(
  await main().catch((error: unknown) => {
    console.error(`check: ${error instanceof Error ? error.message : String(error)}`);
    return 2;
  }),
);
