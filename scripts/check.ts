/**
 * `npm test`: every check there is, going on after a failure so that all problems are seen. The quick ones
 * come first; the steps of tests after them share the processors.
 *
 *   npm test                       everything
 *   npm test -- server/storage     only the test files under, or named like, that path
 *   npm run test:faults            only the fault tests, at their full number of rounds
 *   npm run test:long              only the tests that take minutes; needs root
 *
 * The last line is `N passed, N failed, N skipped`: tests, plus one failure for each other check that failed.
 * When at most two files failed in a whole run, each of them runs once more, alone: a test that passes then
 * is told as flaky, with its error, and counted apart. It is a fault all the same: mend it first.
 * A test that is skipped for want of a package fails where the set-up could have installed that.
 */
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { curablePackage } from './installed.ts';
import { runTests, Slots, type TestOutcome } from './test-run.ts';

interface Command {
  readonly label: string;
  readonly program: string;
  readonly args: readonly string[];
}

interface TestStep {
  readonly label: string;
  readonly patterns: readonly string[];
  /** Test files at a time. */
  readonly concurrency: number;
  readonly timeoutMs: number;
}

const COMMANDS: readonly Command[] = [
  { label: 'type check', program: 'tsc', args: ['-p', '.'] },
  {
    label: 'lint',
    program: 'biome',
    args: ['check', '--error-on-warnings', '--colors=off', '--max-diagnostics=100'],
  },
];

const FAULTS: TestStep = {
  label: 'faults',
  patterns: ['test/faults/**/*.test.ts'],
  concurrency: 2,
  timeoutMs: 300_000,
};

const LONG: TestStep = {
  label: 'long',
  patterns: ['test/long/**/*.test.ts'],
  concurrency: 1,
  timeoutMs: 3_600_000,
};

const TIDY: TestStep = {
  label: 'tidy',
  patterns: ['test/tidy.test.ts', 'test/tidy/**/*.test.ts'],
  concurrency: 2,
  timeoutMs: 60_000,
};

/** Those with the longest files first, so that short ones are left for the end and no processor idles. */
const SHARING: readonly TestStep[] = [
  FAULTS,
  { label: 'acceptance', patterns: ['test/acceptance/**/*.test.ts'], concurrency: 2, timeoutMs: 300_000 },
  {
    label: 'unit',
    patterns: ['{server,sdk,scripts,bench,test/harness}/**/*.test.ts'],
    concurrency: 3,
    timeoutMs: 240_000,
  },
];

/**
 * Test files at a time, for two processors: those of the first two steps wait about half of their time, for a
 * guest, a disk or a moment to kill.
 */
const SLOTS = 4;

const ROOT = dirname(import.meta.dirname);
/** Files named after a step that took long. */
const SLOWEST = 5;
const SLOW_SECONDS = 20;
const FULL_FAULTS_TIMEOUT_MS = 3_600_000;
/** More than this is no accident. */
const MAX_FLAKY_FILES = 2;

/** What the children see: no setting of the person who runs the tests may change what they find. */
function testEnvironment(faultTier: 'fast' | 'full'): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('CLOUDLET_'));
  // Each test file is a process that would strip the types of all it imports anew.
  const NODE_COMPILE_CACHE = join(ROOT, 'node_modules/.cache/node');
  return { NODE_COMPILE_CACHE, ...Object.fromEntries(kept), FAULTS: faultTier };
}

function filesOf(step: TestStep, filters: readonly string[]): string[] {
  const files = globSync([...step.patterns], { cwd: ROOT }).sort();
  if (filters.length === 0) return files;
  const wanted = filters.map((filter) => filter.replace(/^\.?\/+/, ''));
  return files.filter((file) => wanted.some((filter) => file.includes(filter)));
}

async function runCommand({ program, args }: Command): Promise<{ failed: boolean; output: string }> {
  const child = spawn(join(ROOT, 'node_modules/.bin', program), args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      output += text;
    });
  }
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ failed: true, output: `${program}: ${error.message}` }));
    child.on('close', (code) => resolve({ failed: code !== 0, output }));
  });
}

function printStep(label: string, result: string, startMs: number): void {
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`${label.padEnd(12)} ${result} (${seconds} s)`);
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ');
}

class Totals {
  passed = 0;
  failed = 0;
  skipped = 0;
  flaky = 0;

  add(outcome: TestOutcome): void {
    this.passed += outcome.passed;
    this.failed += outcome.failures.length;
    this.skipped += outcome.skips.length;
  }

  toString(): string {
    const flaky = this.flaky > 0 ? `, ${this.flaky} flaky` : '';
    return `${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped${flaky}`;
  }
}

interface FailedFile {
  readonly file: string;
  readonly step: TestStep;
  readonly failures: number;
}

function failedFiles(step: TestStep, { failures }: TestOutcome): FailedFile[] {
  const files = Map.groupBy(failures, ({ ran }) => ran);
  return [...files].map(([file, { length }]) => ({ file, step, failures: length }));
}

/** Runs each file again by itself; what passes was flaky. */
async function tryAgain(failed: readonly FailedFile[], totals: Totals): Promise<void> {
  if (failed.length > MAX_FLAKY_FILES) return;
  for (const { file, step, failures } of failed) {
    const again = await checkTests({ ...step, label: 'again' }, [file], { tier: 'fast' });
    if (again.failures.length > 0) continue;
    totals.failed -= failures;
    totals.flaky += failures;
    console.log(`  flaky: ${file} failed among the others, and passed alone`);
  }
}

async function checkCommand(command: Command, totals: Totals): Promise<void> {
  const start = performance.now();
  const { failed, output } = await runCommand(command);
  printStep(command.label, failed ? 'FAILED' : 'ok', start);
  if (!failed) return;
  totals.failed++;
  console.log(indent(output));
}

interface Sharing {
  readonly tier: 'fast' | 'full';
  readonly slots?: Slots;
  readonly rank?: number;
}

async function checkTests(
  step: TestStep,
  files: readonly string[],
  { tier, ...sharing }: Sharing,
): Promise<TestOutcome> {
  const start = performance.now();
  const outcome = await runTests({
    ...sharing,
    files: files.map((file) => join(ROOT, file)),
    concurrency: step.concurrency,
    timeoutMs: tier === 'full' ? FULL_FAULTS_TIMEOUT_MS : step.timeoutMs,
    env: testEnvironment(tier),
    curable: curablePackage,
  });
  const { passed, failures, skips } = outcome;
  const counts = `${passed} passed, ${failures.length} failed, ${skips.length} skipped`;
  printStep(step.label, `${failures.length > 0 ? 'FAILED ' : ''}${counts} in ${files.length} files`, start);
  const slow = outcome.files.slice(0, SLOWEST).filter(([, seconds]) => seconds >= SLOW_SECONDS);
  const told = slow.map(([file, seconds]) => `${relative(ROOT, file)} ${seconds.toFixed(0)} s`);
  if (told.length > 0) console.log(`  slowest: ${told.join(', ')}`);
  for (const { name, error } of failures) console.log(`  failed: ${name}\n${indent(error)}`);
  for (const { name, reason } of skips) console.log(`  skipped: ${name} (${reason})`);
  return outcome;
}

async function main(args: readonly string[]): Promise<void> {
  process.chdir(ROOT);
  const faultsOnly = args.includes('--faults');
  const filters = args.filter((argument) => !argument.startsWith('--'));
  const longOnly = args.includes('--long');
  const options = ['--faults', '--long'];
  const unknown = args.filter((argument) => argument.startsWith('--') && !options.includes(argument));
  if (unknown.length > 0) {
    throw new Error(`unknown option ${unknown.join(' ')}; give paths, --faults or --long`);
  }

  const totals = new Totals();
  const isWhole = !faultsOnly && !longOnly && filters.length === 0;
  let commands = isWhole ? COMMANDS.map((command) => checkCommand(command, totals)) : [];
  let fileCount = 0;
  const failed: FailedFile[] = [];
  for (const steps of faultsOnly ? [[FAULTS]] : longOnly ? [[LONG]] : [[TIDY], SHARING]) {
    const slots = new Slots(SLOTS);
    const sharing = { tier: faultsOnly ? 'full' : 'fast', slots } as const;
    const runs = steps.map(async (step, rank) => {
      const files = filesOf(step, filters);
      if (files.length === 0) return;
      fileCount += files.length;
      const outcome = await checkTests(step, files, { ...sharing, rank });
      totals.add(outcome);
      failed.push(...failedFiles(step, outcome));
    });
    await Promise.all([...commands, ...runs]);
    commands = [];
  }
  if (isWhole) await tryAgain(failed, totals);
  if (fileCount === 0) {
    console.log(`no test file matches ${filters.join(' ') || 'the patterns'}`);
    totals.failed++;
  }
  console.log(`\n${totals}`);
  // A test that left something behind in this process must not keep the check from ending.
  process.exit(totals.failed === 0 ? 0 : 1);
}

await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(`check: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(2);
});
