/** The steps of the check: the test files, and the groups that run together. */
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
 * Left out of test:all, and part of test:long: each takes about a minute of processor time, and a
 * similar test remains.
 */
export const SLOW_FILES: ReadonlySet<string> = new Set(
  [
    'cli/hostile',
    'server/commands/migrate',
    'server/accounts/export/large-exports',
    'server/drivers/blobs-s3/acceptance',
    'server/drivers/blobs-s3/blobs-s3',
    'server/drivers/engine-children/child-slots',
    'server/drivers/engines/mongodb/child/archives',
    'server/drivers/engines/mysql/dumps/foreign-dumps',
    'server/drivers/engines/mysql/external-engine',
    'server/drivers/engines/mysql/external-server',
    'server/drivers/engines/mysql/test-databases',
    'server/drivers/engines/mysql/tls',
    'server/drivers/engines/postgresql/connections',
    'server/drivers/engines/postgresql/continuous',
    'server/drivers/engines/postgresql/data-upgrade',
    'server/drivers/engines/postgresql/external-engine',
    'server/drivers/engines/postgresql/external-server',
    'server/drivers/engines/postgresql/server/server-life',
    'server/drivers/engines/postgresql/tenancy',
    'server/drivers/engines/postgresql/test-databases',
    'server/drivers/engines/postgresql/tls',
    'server/drivers/engines/sqlite/children',
    'server/drivers/host-process/host-processes',
    'server/drivers/managed-server/shared-server',
    'server/drivers/metadata-postgresql/acceptance',
    'server/drivers/metadata-postgresql/store-hold',
    'server/drivers/qemu/qemu-hypervisor',
    'server/drivers/server-proxy/postgresql-proxy',
    'test/acceptance/accounts-commands',
    'test/acceptance/accounts-flood',
    'test/acceptance/accounts-registration',
    'test/acceptance/accounts-timing',
    'test/acceptance/audit-hostile',
    'test/acceptance/audit-real',
    'test/acceptance/billing-credits',
    'test/acceptance/billing-machines',
    'test/acceptance/cdn-browser',
    'test/acceptance/cli-browser-login',
    'test/acceptance/cli-db-clients',
    'test/acceptance/cli-files',
    'test/acceptance/cli-login',
    'test/acceptance/cli-machines',
    'test/acceptance/cli-proxies',
    'test/acceptance/cli-recovery',
    'test/acceptance/cli-resources',
    'test/acceptance/cli-surroundings',
    'test/acceptance/cli-terminal',
    'test/acceptance/cli-tunnels',
    'test/acceptance/console-accounts',
    'test/acceptance/console-billing',
    'test/acceptance/console-browsers',
    'test/acceptance/console-databases',
    'test/acceptance/console-day',
    'test/acceptance/console-files',
    'test/acceptance/console-imports',
    'test/acceptance/console-large-uploads',
    'test/acceptance/console-machines',
    'test/acceptance/console-nodes',
    'test/acceptance/console-operator',
    'test/acceptance/console-part-uploads',
    'test/acceptance/console-parts',
    'test/acceptance/console-policy',
    'test/acceptance/console-previews',
    'test/acceptance/console-queries',
    'test/acceptance/console-recovery',
    'test/acceptance/console-restores',
    'test/acceptance/console-s3',
    'test/acceptance/console-uploads',
    'test/acceptance/console-young-machine',
    'test/acceptance/cors',
    'test/acceptance/database-slots',
    'test/acceptance/databases-connections',
    'test/acceptance/databases-content',
    'test/acceptance/databases-credits',
    'test/acceptance/databases-egress',
    'test/acceptance/databases-external',
    'test/acceptance/databases-flood',
    'test/acceptance/databases-hosts',
    'test/acceptance/databases-money',
    'test/acceptance/databases-neighbours',
    'test/acceptance/databases-restart',
    'test/acceptance/databases-sessions',
    'test/acceptance/databases-tls',
    'test/acceptance/databases-unread-dumps',
    'test/acceptance/docs',
    'test/acceptance/guides-machines',
    'test/acceptance/guides-pages',
    'test/acceptance/http-lifecycle',
    'test/acceptance/images',
    'test/acceptance/mongodb-neighbours',
    'test/acceptance/nodes-one-key',
    'test/acceptance/proxies',
    'test/acceptance/recovery-account',
    'test/acceptance/recovery-care',
    'test/acceptance/recovery-commands',
    'test/acceptance/recovery-compare',
    'test/acceptance/recovery-databases',
    'test/acceptance/recovery-drill',
    'test/acceptance/recovery-drill-beside',
    'test/acceptance/recovery-encryption',
    'test/acceptance/recovery-first',
    'test/acceptance/recovery-gap',
    'test/acceptance/recovery-journal',
    'test/acceptance/recovery-keys',
    'test/acceptance/recovery-latest',
    'test/acceptance/recovery-locks',
    'test/acceptance/recovery-machines',
    'test/acceptance/recovery-making',
    'test/acceptance/recovery-memory',
    'test/acceptance/recovery-moments',
    'test/acceptance/recovery-moments-s3',
    'test/acceptance/recovery-one-database',
    'test/acceptance/recovery-one-machine',
    'test/acceptance/recovery-one-object-load',
    'test/acceptance/recovery-one-object-s3',
    'test/acceptance/recovery-overlays',
    'test/acceptance/recovery-parts',
    'test/acceptance/recovery-progress',
    'test/acceptance/recovery-restore',
    'test/acceptance/recovery-s3',
    'test/acceptance/recovery-schedule',
    'test/acceptance/recovery-status',
    'test/acceptance/recovery-test-databases',
    'test/acceptance/recovery-turns',
    'test/acceptance/recovery-versions',
    'test/acceptance/recovery-whole',
    'test/acceptance/recovery-writers',
    'test/acceptance/s3-crash',
    'test/acceptance/setup-browser',
    'test/acceptance/start-signals',
    'test/acceptance/tunnels-databases',
    'test/acceptance/tunnels-vms',
    'test/acceptance/vms-addresses',
    'test/acceptance/vms-admin',
    'test/acceptance/vms-closed',
    'test/acceptance/vms-engine',
    'test/acceptance/vms-guest',
    'test/acceptance/vms-hiding',
    'test/acceptance/vms-own-users',
    'test/acceptance/vms-port-cookies',
    'test/acceptance/vms-private-network',
    'test/acceptance/vms-programs',
    'test/acceptance/vms-published',
    'test/acceptance/vms-sshd',
    'test/acceptance/vms-suspended',
    'test/acceptance/vms-trouble',
    'test/faults/billing-kill',
    'test/faults/blobs-tls',
    'test/faults/damage',
    'test/faults/database-servers-disk-full',
    'test/faults/database-servers-far-over',
    'test/faults/database-servers-kill',
    'test/faults/database-servers-trouble',
    'test/faults/databases-damage',
    'test/faults/databases-disk-full',
    'test/faults/disk-full',
    'test/faults/fsync-error',
    'test/faults/hot-keys',
    'test/faults/kill-after-answer',
    'test/faults/lost-metadata',
    'test/faults/metadata-server',
    'test/faults/power-loss',
    'test/faults/power-loss-files',
    'test/faults/recovery-damage',
    'test/faults/recovery-drill-kill',
    'test/faults/recovery-drill-kill-late',
    'test/faults/recovery-kill',
    'test/faults/recovery-logs-target',
    'test/faults/recovery-object-kill',
    'test/faults/recovery-room',
    'test/faults/recovery-s3',
    'test/faults/repeated-deletes',
    'test/faults/vanishing-client',
    'test/faults/vm-disk-full',
    'test/faults/vm-reboot',
    'test/tidy/new-engine',
    'test/tidy/new-setting',
  ].map((name) => `${name}.test.ts`),
);
export const SLOW = tests('slow', 2, ...SLOW_FILES);

/** The quick ones first; then those with the longest files, so that no processor is idle at the end. */
export const STEPS: readonly Step[] = [
  // More checkers at a time look at the same types again: twice the processor time.
  command('type check', 'tsc', '-p', '.', '--checkers', '1'),
  command('lint', 'biome', 'check', '--error-on-warnings', '--colors=off', '--max-diagnostics=100'),
  together('tidy', 'test/tidy.test.ts', 'test/tidy/**/*.test.ts'),
  FAULTS,
  { ...tests('acceptance', 6, 'test/acceptance/**/*.test.ts'), shared: 'cloud' },
  together('unit', '{server,libs,sdk,cli,console,scripts,bench,test/harness}/**/*.test.ts'),
];

export function filesOf({ label, patterns }: Step, filters: readonly string[]): string[] {
  if (patterns === undefined) return filters.length === 0 ? [label] : [];
  const files = globSync([...patterns], { cwd: ROOT }).sort();
  const wanted = filters.map((filter) => filter.replace(/^\.?\/+/, ''));
  return filters.length === 0 ? files : files.filter((file) => wanted.some((part) => file.includes(part)));
}

/**
 * The acceptance and fault tests that `npm test` runs: each domain as its users use it, over HTTP
 * and with other vendors' drivers and browsers, and kills.
 */
const JOURNEYS: ReadonlySet<string> = new Set(
  [
    'acceptance/accounts-login',
    'acceptance/billing-report',
    'acceptance/console-rows',
    'acceptance/console-storage',
    'acceptance/databases-libsql',
    'acceptance/databases-life',
    'acceptance/databases-mongodb',
    'acceptance/databases-mysql',
    'acceptance/databases-postgresql',
    'acceptance/http-service',
    'acceptance/nodes-killed',
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

/** A file contains this if it changes process-wide state. */
const OWN_PROCESS = /^\/\/ A process of its own: \S/m;
/**
 * Imports that start clouds, engines, machines, child processes and threads: these may end late, or
 * badly.
 */
const STARTS = new RegExp(
  [
    'node:child_process|node:worker_threads',
    '.*/(?:cloud-process|command|own-host-child|test-guest|operator-[a-z]+|trips)\\.ts',
    '.*/(?:qemu|postgresql|mysql|mongodb|sqlite|s3)-fixture\\.ts',
  ]
    .map((path) => `from '(?:${path})'`)
    .join('|'),
);

/** The one cloud of a process: test/harness/shared-cloud.ts. */
const SHARED_CLOUD = /\bshared(?:Cloud|S3)\(/;

/** True for a file that needs its own process. */
function isAlone(step: Step, file: string): boolean {
  if (step.shared === undefined) return true;
  const text = textOf(file);
  if (step.shared === 'cloud') return !SHARED_CLOUD.test(text);
  return OWN_PROCESS.test(text) || STARTS.test(text);
}

/** The suites that each implementation of an interface must pass. */
const CONFORMANCE = /\.conformance\.ts'/;

/** True for files that `npm test` runs; `npm run test:all` runs the rest too. */
export function isQuick(step: Step, file: string): boolean {
  if (step.command !== undefined || JOURNEYS.has(file)) return true;
  return step.shared === 'code' && (!isAlone(step, file) || CONFORMANCE.test(textOf(file)));
}

/** Files per process. More of them share the common start-up, fewer distribute better. */
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
