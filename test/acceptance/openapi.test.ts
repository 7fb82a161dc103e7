/** Others generate clients from openapi.json: a linter reports no errors, and a generated client works. */
import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';

const BIN = fileURLToPath(new URL('../../node_modules/.bin', import.meta.url));

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
writeFileSync(join(folder, 'openapi.json'), await (await fetch(`${cloud.api}/api/openapi.json`)).text());

/** Without checking for a newer version. */
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };

function run(program: string, ...args: readonly string[]): SpawnSyncReturns<string> {
  const env = { ...process.env, ...QUIET, CLOUD: cloud.api, KEY: ADMIN_KEY };
  return spawnSync(join(BIN, program), args, { cwd: folder, env, encoding: 'utf8', maxBuffer: 1e8 });
}

test('a linter finds nothing to say', () => {
  // Errors possible in every call are its `default` response, and a WebSocket starts with 101.
  const allowed = ['operation-4xx-response', 'operation-2xx-response'].map((rule) => `--skip-rule=${rule}`);
  const { stdout, stderr } = run('redocly', 'lint', 'openapi.json', '--format=json', ...allowed);
  assert.notEqual(stdout, '', stderr);
  const { totals, problems } = JSON.parse(stdout);
  assert.deepEqual(problems, []);
  assert.deepEqual([totals.errors, totals.warnings], [0, 0]);
});

/** A program by another author; the lines after `@ts-expect-error` must not compile. */
const PROGRAM = `
import { ApiError, configure, createBucket, createVm, getAccount, getBucket, listInstanceTypes, type Account, type Bucket, type InstanceType, type NewVm, type Problem, type StorageObject, type Vm } from './client.ts';

configure({ serverUrl: process.env.CLOUD, auth: { apiKey: { apiKey: process.env.KEY ?? '' } } });
const account: Account = await getAccount();
const made: Bucket = await createBucket({ body: { name: 'photos', versioning: true } });
const read: Bucket = await getBucket({ path: { name: made.name } });
const types: InstanceType[] = await listInstanceTypes();
const started = async (): Promise<string> => (await createVm({ body: { name: 'web', instance_type: 't2.micro' } })).vm_id;
const wanted: NewVm = { name: 'web', instance_type: types[0].instance_type };
let problem: Problem | undefined;
try {
  await getBucket({ path: { name: 'missing' } });
} catch (error) {
  if (error instanceof ApiError) problem = error.body as Problem;
}

// @ts-expect-error
const misspelt: NewVm = { nmae: 'web', instance_type: 't2.micro' };
const reason = (shown: Vm): string | undefined => shown.state_reason?.code;
// @ts-expect-error
const gone = (shown: Vm): boolean => shown.state === 'gone';
const etags = (objects: StorageObject[]): string[] => objects.map(({ etag }) => etag);

console.log(JSON.stringify({ account, made, read, wanted, problem }));
`;

test('a client that is generated from it reads well, compiles and works', () => {
  const generated = run(
    'redocly',
    'generate-client',
    'openapi.json',
    '-o',
    'client.ts',
    '--args-style=grouped',
  );
  assert.equal(generated.status, 0, generated.stderr);
  const client = readFileSync(join(folder, 'client.ts'), 'utf8');
  const [, vm = ''] = /export type Vm = \{([^}]*)\}/.exec(client) ?? [];
  for (const member of [
    'state: "created" | "starting"',
    'state_reason: Reason | null;',
    'ports: VmPort[];',
  ]) {
    assert.ok(vm.includes(member), vm);
  }
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        target: 'esnext',
        module: 'nodenext',
        lib: ['esnext', 'dom'],
        types: ['node'],
        typeRoots: [join(BIN, '../@types')],
        allowImportingTsExtensions: true,
      },
    }),
  );
  const compiled = run('tsc', '-p', '.');
  assert.equal(compiled.status, 0, compiled.stdout);
  const { status, stdout, stderr } = run('node', 'program.ts');
  assert.equal(status, 0, stderr);
  const { account, made, read, wanted, problem } = JSON.parse(stdout);
  assert.equal(account.is_admin, true);
  assert.deepEqual(read, made);
  assert.equal(made.versioning, true);
  assert.equal(wanted.instance_type, 't2.micro');
  assert.deepEqual([problem.status, problem.code], [404, 'bucket_not_found']);
});

test('202 is described at calls that last, and with ?async=true at each that takes the preference', async () => {
  const accepted = async (query: string) => {
    const document = await (await fetch(`${cloud.api}/api/openapi.json${query}`)).json();
    const { paths } = document as { paths: Record<string, Record<string, Described>> };
    return Object.values(paths)
      .flatMap((item) => Object.values(item))
      .filter(({ responses }) => responses['202'] !== undefined)
      .map(({ operationId }) => operationId);
  };
  assert.deepEqual((await accepted('')).sort(), ['restoreAccount', 'restoreBucket']);
  const all = await accepted('?async=true');
  assert.ok(all.length > 60 && all.includes('createVm') && all.includes('restoreBucket'), all.join(' '));
  assert.equal((await fetch(`${cloud.api}/api/openapi.json?async=maybe`)).status, 400);
});

interface Described {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, unknown>>;
}
