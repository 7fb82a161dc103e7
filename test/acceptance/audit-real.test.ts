/** No secret gets into the audit log through successful calls, on real machines, databases and buckets. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { CASES } from './permission-cases.ts';
import { cannotRunGuests, idleImage, newVm } from './vms-kit.ts';

const cloud = await CloudProcess.start({ env: { CLOUDLET_RATE_REQUESTS: '100000' } });
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const chief = anyone.as(ADMIN_KEY);

const MARK = 'kanarienvogel-7319';
const PASSWORD = `${MARK} password`;
const SSH_KEY = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)} ${MARK}`;

/** Successful bodies with users' own content; the others are those of permissions.test.ts. */
const BODIES: Readonly<Record<string, object>> = {
  updateAccount: { current_password: PASSWORD, password: `${PASSWORD} 2`, email: `${MARK}@example.org` },
  confirmPassword: { current_password: PASSWORD },
  createTicket: { path: `/api/account/export?x=${MARK}` },
  rotateApiKey: { overlap_seconds: 3600 },
  addSshKey: { name: 'laptop', public_key: SSH_KEY },
  lendSshKey: { public_key: SSH_KEY },
  changeVm: { tags: MARK },
  changeBucketSettings: { tags: { [MARK]: MARK } },
  changeObject: { metadata: { [MARK]: MARK } },
  copyObject: { name: `${MARK}/copy` },
  selectFiles: { names: [MARK] },
  createShare: { bucket: 'real-bucket', name: `${MARK}/a.txt`, password: PASSWORD },
  beginUpload: { name: `${MARK}/large` },
  queryDatabase: { statement: `SELECT '${MARK}'` },
  explainDatabaseQuery: { statement: `SELECT '${MARK}'` },
  saveQuery: { name: MARK, text: `SELECT '${MARK}'` },
  createWebhook: { url: `https://example.org/${MARK}` },
  changeWebhook: { url: `https://example.org/${MARK}-2` },
  adminCreateAccount: { username: 'plain-name', email: `${MARK}-3@example.org`, password: PASSWORD },
  adminChangeAccount: { email: `${MARK}-4@example.org` },
  adminCreateInvitation: { label: MARK, email: `${MARK}-5@example.org`, username: `${MARK}-5` },
  adminRenewInvitation: { label: `${MARK} 2`, email: `${MARK}-6@example.org` },
  adminImportInvitations: { csv: `label,email\n${MARK},${MARK}-7@example.org\n` },
};

/** They end something the test needs, open a socket, or stop other work of the cloud. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['closeAccount', 'watchUpdates', 'rotateMasterKey', 'openConsole', 'openVmTunnel', 'openDatabaseTunnel'],
  ...['adminDrainNode', 'adminForgetNode', 'exportAccount', 'setUp', 'getSetupPage'],
]);

const POST = { method: 'POST' };
/** Secrets of answers by the member that contained them. */
const secrets = new Map<string, string>();

/** Collects every secret of an answer: by the name of its member, and in links the token. */
function gather(value: unknown, name: string): void {
  if (Array.isArray(value)) for (const each of value) gather(each, name);
  else if (typeof value === 'object' && value !== null)
    for (const [member, each] of Object.entries(value)) gather(each, member);
  if (typeof value !== 'string') return;
  const isSecret = /(?:^|_)(?:password|secret|token|ticket|key|device_code)$/.test(name);
  // Answers about permissions name a key by its id, like entries.
  if (isSecret && value.length >= 16 && !value.startsWith('key-')) secrets.set(value, name);
  if (!URL.canParse(value)) return;
  const { password, search, hash, pathname } = new URL(value);
  const last = /\/s\/([\w-]{20,})/.exec(pathname)?.[1] ?? '';
  for (const part of [password, search, hash, last]) if (part.length >= 16) secrets.set(part, name);
}

/** Members of entries that may contain the mark. */
const NAMES: ReadonlySet<string> = new Set(['saveQuery name', 'createShare name', 'changeVm tags']);

interface Place {
  readonly [parameter: string]: string;
}

/** A real resource of every kind, by the parameters of paths. */
async function things(admin: CheckedClient): Promise<{ place: Place; databases: string[] }> {
  await admin.expect(201, '/api/buckets', { json: { name: 'real-bucket', versioning: true } });
  const { body: object } = await admin.upload('real-bucket', `${MARK}/a.txt`, MARK);
  const pupil = await anyone.register();
  const made = (path: string, json: object) => admin.expect(201, path, { json });
  const key = await made('/api/account/access-keys', { name: 'k', scopes: ['*'] });
  gather(key, '');
  const hook = await made('/api/webhooks', { url: `https://example.org/${MARK}` });
  gather(hook, '');
  const invitation = await made('/api/admin/invitations', { label: MARK });
  gather(invitation, '');
  await made('/api/admin/plans', { name: 'real-plan' });
  await made('/api/encryption-keys', { id: 'real-key' });
  const vm = cannotRunGuests() ? '' : await newVm(admin, await idleImage(admin));
  const engines: { engine: string; available: boolean }[] = await admin.expect(200, '/api/database-engines');
  const databases: string[] = [];
  for (const { engine, available } of engines) {
    if (!available) continue;
    const { database_id } = await made('/api/databases', { name: `real-${engine}`, engine });
    await eventually(`${engine} can be used`, async () => {
      const { state } = await admin.expect(200, `/api/databases/${database_id}`);
      return state === 'ready';
    });
    gather(await admin.expect(200, `/api/databases/${database_id}/credentials`), '');
    databases.push(database_id);
  }
  const place = {
    'buckets/{name}': 'buckets/real-bucket',
    'plans/{name}': 'plans/real-plan',
    'ssh-keys/{name}': 'ssh-keys/laptop',
    'storage/{id}': `storage/${object.object_id}`,
    'access-keys/{id}': `access-keys/${key.id}`,
    'accounts/{id}': `accounts/${pupil.id}`,
    'invitations/{id}': `invitations/${invitation.id}`,
    'webhooks/{id}': `webhooks/${hook.id}`,
    '{keyId}': 'real-key',
    '{vm_id}': vm.split('/').at(-1) ?? '',
    '{number}': '1',
    '{account}': String(pupil.id),
    '{short_name}': 'none',
  };
  return { place, databases };
}

/** Reads, then changes, then removals. */
const rank = ({ method, operation: { operationId } }: Entry) =>
  method === 'GET' ? 0 : method === 'DELETE' || /Remove|abort|end[A-Z]/.test(operationId) ? 2 : 1;

test('no secret that a successful call was given or showed is in the log', {
  timeout: 500_000,
}, async (t) => {
  const chiefs = { username: 'real', email: 'real@example.org', password: PASSWORD, is_admin: true };
  const { api_key } = await chief.expect(201, '/api/admin/accounts', { json: chiefs });
  const admin = anyone.as(api_key);
  secrets.set(api_key, 'api_key');
  const { place, databases } = await things(admin);
  const done: string[] = [];
  const call = async ({ method, path, operation: { operationId } }: Entry, database: string) => {
    const { json, form, query = '' } = CASES[operationId] ?? {};
    const named = Object.entries(place).reduce((url, [from, to]) => url.replace(from, to), path);
    const url = named.replace('{database_id}', database).replaceAll(/\{\w+\}/g, 'none') + query;
    const body = new FormData();
    body.set('file', new Blob([MARK]), `${MARK}.txt`);
    const given = BODIES[operationId] ?? json;
    // A followed log never ends.
    const signal = AbortSignal.timeout(20_000);
    const headers = {
      authorization: `Bearer ${api_key}`,
      ...(!form && given !== undefined && { 'content-type': 'application/json' }),
    };
    const sent = form ? body : given === undefined ? null : JSON.stringify(given);
    const answer = await fetch(cloud.api + url, { method, headers, body: sent, signal }).catch(() => null);
    const text = await answer?.text().catch(() => '');
    if (answer === null || text === undefined || !answer.ok) return;
    done.push(operationId);
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
    if (isJson && text !== '') gather(JSON.parse(text), '');
  };
  const operations = anyone.declaration.operations
    .filter(({ operation }) => operation.operationId in CASES && !LEFT_OUT.has(operation.operationId))
    .sort((a, b) => rank(a) - rank(b));
  for (const entry of operations) {
    for (const database of entry.path.includes('{database_id}') ? databases : [''])
      await call(entry, database);
  }
  await call(
    { method: 'POST', path: '/api/admin/accounts/{id}/api-key', operation: { operationId: 'x' } } as Entry,
    '',
  );
  await admin.call('/api/login', { json: { username: 'real', password: PASSWORD }, ...POST });
  await sleep(1500);
  const log = await chief.fetch('/api/audit?account_id=all&format=jsonl').then((answer) => answer.text());
  const leaks = [...secrets].filter(([secret]) => log.includes(secret));
  assert.deepEqual(leaks, [], 'secrets that are in the log');
  const marked = log
    .split('\n')
    .filter((line) => line.includes(MARK))
    .map((line) => JSON.parse(line));
  // Names chosen by users are shown, and nothing else of theirs.
  const shown = marked.map(({ action, target, detail }) => {
    const names = Object.entries(detail ?? {}).flatMap(([name, value]) =>
      JSON.stringify(value).includes(MARK) ? [name] : [],
    );
    return [action, ...names, ...(String(target).includes(MARK) ? ['target'] : [])].join(' ');
  });
  assert.deepEqual(
    shown.filter((each) => !NAMES.has(each)),
    [],
  );
  const succeeded = new Set(done);
  t.diagnostic(
    `${succeeded.size} operations succeeded, ${secrets.size} secrets, ${databases.length} engines`,
  );
  assert.ok(
    succeeded.size > 100 && secrets.size > 20,
    `${succeeded.size} operations, ${secrets.size} secrets`,
  );
});
