/** The steps of the check: which test files there are, and which of them run together. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Step {
  readonly label: string;
  /** Globs that find the test files. */
  readonly patterns?: readonly string[];
  /** A command instead. */
  readonly command?: readonly string[];
  /** Jobs at a time. */
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Its files share processes: those of pure code, or those that share a cloud. */
  readonly shared?: 'code' | 'cloud';
}

/** One process: a command, one file, or files that share it. */
export interface Job {
  readonly step: Step;
  readonly files: readonly string[];
}

const ROOT = dirname(import.meta.dirname);

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
const together = (label: string, ...patterns: readonly string[]): Step => {
  return { ...tests(label, 6, ...patterns), shared: 'code' };
};

export const FAULTS = tests('faults', 2, 'test/faults/**/*.test.ts');
export const LONG = { ...tests('long', 1, 'test/long/**/*.test.ts'), timeoutMs: 3_600_000 };
/**
 * Left out of test:all, and part of test:long: each takes a minute or more there, and has a shorter neighbour
 * that stays.
 */
export const SLOW_FILES: ReadonlySet<string> = new Set(
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
export const SLOW = tests('slow', 2, ...SLOW_FILES);

/** The quick ones first; then those with the longest files, so that no processor idles in the end. */
export const STEPS: readonly Step[] = [
  command('type check', 'tsc', '-p', '.'),
  command('lint', 'biome', 'check', '--error-on-warnings', '--colors=off', '--max-diagnostics=100'),
  together('tidy', 'test/tidy.test.ts', 'test/tidy/**/*.test.ts'),
  FAULTS,
  { ...tests('acceptance', 6, 'test/acceptance/**/*.test.ts'), shared: 'cloud' },
  together('unit', '{server,sdk,cli,console,scripts,bench,test/harness}/**/*.test.ts'),
];

export function filesOf({ label, patterns }: Step, filters: readonly string[]): string[] {
  if (patterns === undefined) return filters.length === 0 ? [label] : [];
  const files = globSync([...patterns], { cwd: ROOT }).sort();
  const wanted = filters.map((filter) => filter.replace(/^\.?\/+/, ''));
  return filters.length === 0 ? files : files.filter((file) => wanted.some((part) => file.includes(part)));
}

/**
 * Those of the acceptance and fault tests that `npm test` runs: each domain as its users meet it, over HTTP
 * and by drivers and browsers of others, and kills.
 */
const JOURNEYS: ReadonlySet<string> = new Set(
  [
    'acceptance/accounts-login',
    'acceptance/billing-report',
    'acceptance/console-storage',
    'acceptance/databases-libsql',
    'acceptance/databases-life',
    'acceptance/databases-mongodb',
    'acceptance/databases-mysql',
    'acceptance/databases-postgresql',
    'acceptance/http-service',
    'acceptance/permissions',
    'acceptance/recovery',
    'acceptance/s3-basics',
    'acceptance/s3-node-clients',
    'acceptance/start-banner',
    'acceptance/storage-buckets',
    'acceptance/storage-download',
    'acceptance/storage-upload',
    'acceptance/storage-versions',
    'acceptance/vms-life',
    'faults/databases-kill',
    'faults/kill',
    'faults/vm-kill',
  ].map((name) => `test/${name}.test.ts`),
);

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** A file says so when it changes what its process has one of. */
const OWN_PROCESS = /^\/\/ A process of its own: \S/m;
/** Imports of what starts clouds, engines, machines, children and threads: these may end late, or badly. */
const STARTS = new RegExp(
  [
    'node:child_process|node:worker_threads',
    '.*/(?:cloud-process|command|own-host-child|test-guest|operator-[a-z]+)\\.ts',
    '.*/(?:qemu|postgresql|mysql|mongodb|sqlite|s3)-fixture\\.ts',
  ]
    .map((path) => `from '(?:${path})'`)
    .join('|'),
);

/** The one cloud of a process: test/harness/shared-cloud.ts. */
const SHARED_CLOUD = /\bshared(?:Cloud|S3)\(/;

/** True for a file that does not share its process. */
function isAlone(step: Step, file: string): boolean {
  if (step.shared === undefined) return true;
  const text = textOf(file);
  if (step.shared === 'cloud') return !SHARED_CLOUD.test(text);
  return OWN_PROCESS.test(text) || STARTS.test(text);
}

/** The suites that each implementation of an interface must pass. */
const CONFORMANCE = /\.conformance\.ts'/;

/** True for what `npm test` runs; `npm run test:all` runs the rest too. */
export function isQuick(step: Step, file: string): boolean {
  if (step.command !== undefined || JOURNEYS.has(file)) return true;
  return step.shared === 'code' && (!isAlone(step, file) || CONFORMANCE.test(textOf(file)));
}

/** Files of one process. More of them begin less often what all need, fewer spread better. */
const FILES_TOGETHER = { code: 24, cloud: 12 };

/** The processes of a step; those of one file first, which take longest. */
export function jobsOf(step: Step, files: readonly string[]): Job[] {
  if (step.command !== undefined) return files.map((file) => ({ step, files: [file] }));
  const alone = files.filter((file) => isAlone(step, file));
  const together = files.filter((file) => !alone.includes(file));
  const count = Math.ceil(together.length / FILES_TOGETHER[step.shared ?? 'code']);
  const shared = Array.from({ length: count }, (_, i) =>
    together.slice((i * together.length) / count, ((i + 1) * together.length) / count),
  );
  return [...alone.map((file) => [file]), ...shared].map((files) => ({ step, files }));
}
