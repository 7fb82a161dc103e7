/**
 * Tests every operation of openapi.json at the host node and at a front node: two accounts have the same
 * resources, each uses one of the nodes, and the answers have the same status, code and members.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CASES } from '../acceptance/permission-cases.ts';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import type { Call } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';

/** One account with the node it uses. */
interface Side {
  readonly name: string;
  readonly node: CloudProcess;
  readonly owner: CheckedClient;
  readonly admin: CheckedClient;
  /** The resource named by a path: the segment before, with the name in braces. */
  readonly ids: Readonly<Record<string, string>>;
}

/** Streams, and operations that would end the test. */
const LEFT_OUT = new Set([
  'watchUpdates',
  'closeAccount',
  'drillRecoveryPoint',
  'cancelRecoveryPoint',
  'rotateMasterKey',
  'showRecoveryKey',
  'getDocs',
]);
/** Ends something that others need. */
const LAST = [
  ...['endShare', 'deleteObject', 'deleteBucket', 'deleteVm', 'deleteDatabase', 'deleteWebhook'],
  ...['endSession', 'endOtherSessions', 'deleteAccessKey', 'adminSuspendAccount', 'adminResumeAccount'],
  ...['adminRemoveAccount', 'adminKeepAccount', 'rotateApiKey'],
];
/** Bodies of calls that have an effect on existing resources. */
const BODIES: Readonly<Record<string, (side: Side) => unknown>> = {
  createShare: ({ name }) => ({ bucket: `walked-${name}`, name: 'a.txt' }),
  createTicket: () => ({ path: '/api/account' }),
  readDatabaseRows: () => ({ table: 'notes' }),
  changeDatabaseRows: () => ({ table: 'notes', changes: [{ action: 'insert', values: { text: 'b' } }] }),
  createBucket: ({ name }) => ({ name: `new-at-${name}` }),
  adminCreateAccount: ({ name }) => ({ username: `of-${name}`, email: `of-${name}@example.org` }),
  adminCreatePlan: ({ name }) => ({ name: `plan-${name}` }),
};
const QUERIES: Readonly<Record<string, string>> = { exportDatabaseRows: '?table=notes' };

describe('all operations', { skip: noCluster }, () => {
  let cluster: Cluster;
  let sides: readonly [Side, Side];
  before(async () => {
    cluster = await Cluster.start(2, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' });
    const [host, front] = cluster.nodes as [CloudProcess, CloudProcess];
    sides = [await newSide(host, 'host'), await newSide(front, 'front')];
  });
  after(() => cluster?.stop());

  test('answer at a front node as at the host', async (t) => {
    const entries = sides[1].owner.declaration.operations
      .filter(({ operation }) => operation.operationId in CASES && !LEFT_OUT.has(operation.operationId))
      .sort((one, two) => rank(one) - rank(two));
    assert.ok(entries.length > 180);
    const differing: string[] = [];
    const refused: string[] = [];
    for (const entry of entries) {
      const [here, there] = [await ask(sides[0], entry), await ask(sides[1], entry)];
      const { operationId } = entry.operation;
      if (here !== there) differing.push(`${operationId}: ${here} at the host, ${there} at the front`);
      if (!/^2/.test(here)) refused.push(`${operationId} ${here.split(' ', 2).join(' ')}`);
    }
    t.diagnostic(`${entries.length - refused.length} of ${entries.length} done; not: ${refused.join(', ')}`);
    assert.deepEqual(differing, []);
    assert.ok(refused.length < 60, refused.join('\n'));
  });
});

function rank({ method, operation: { operationId } }: Entry): number {
  const last = LAST.indexOf(operationId);
  if (last >= 0) return 100 + last;
  return ['GET', 'PATCH', 'POST', 'PUT', 'DELETE'].indexOf(method);
}

/** Only one can run in the whole cloud. */
const BUSY = /point_in_progress|job_running/;

/** The answer once no other operation blocks it. */
function ask(side: Side, entry: Entry): Promise<string> {
  return eventually(entry.operation.operationId, async () => {
    const answer = await askOnce(side, entry).catch((error: Error) => {
      const { hasEnded, output } = side.node;
      const node = `the ${side.name} ${hasEnded ? 'has ended' : 'runs'}: ${output.slice(-2000)}`;
      throw new Error(`${entry.operation.operationId}: ${error.cause ?? error}; ${node}`);
    });
    return BUSY.test(answer) ? null : answer;
  });
}

/** `200 {members}`, or `404 code`. */
async function askOnce(side: Side, { method, path, operation }: Entry): Promise<string> {
  const { operationId, 'x-permission': permission } = operation;
  const { json, form, query = '' } = CASES[operationId] ?? {};
  const url = path.replaceAll(
    /(\w[\w-]*)\/\{(\w+)\}/g,
    (whole, before) => `${before}/${side.ids[whole] ?? 'nothing'}`,
  );
  const body = new FormData();
  body.set('file', new Blob(['x']), 'x.txt');
  const sent = BODIES[operationId]?.(side) ?? json;
  const call: Call = form ? { method, body } : { method, ...(sent === undefined ? {} : { json: sent }) };
  const isAdmin = permission === 'admin' || permission === 'admin:read';
  const response = await (isAdmin ? side.admin : side.owner).fetch(
    url + (QUERIES[operationId] ?? query),
    call,
  );
  const text = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  if (response.status >= 400) return `${response.status} ${isJson ? JSON.parse(text).code : text}`;
  return `${response.status} ${isJson ? shapeOf(JSON.parse(text)) : response.headers.get('content-type')}`;
}

/** The members of an answer, and of the first entry of a list. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${shapeOf(value[0])}]`;
  return typeof value === 'object' && value !== null ? Object.keys(value).sort().join(' ') : typeof value;
}

/** A new account with one resource of each kind. */
async function newSide(node: CloudProcess, name: string): Promise<Side> {
  const anyone = await CheckedClient.open(node.api);
  const account = await anyone.register();
  const [owner, admin] = [anyone.as(account.api_key), anyone.as(ADMIN_KEY)];
  const bucket = `walked-${name}`;
  await owner.expect(201, '/api/buckets', { json: { name: bucket } });
  const { body: object } = await owner.upload(bucket, 'a.txt', 'mine');
  const upload = await owner.expect(201, `/api/buckets/${bucket}/uploads`, { json: { name: 'parts' } });
  const key = { name: 'k', scopes: ['storage:read'] };
  const { id: accessKey } = await owner.expect(201, '/api/account/access-keys', { json: key });
  await owner.expect(200, '/api/login', {
    json: { username: account.username, password: 'correct horse battery' },
  });
  const [session] = await owner.expect(200, '/api/account/sessions');
  const { vm_id: vm } = await owner.expect(201, '/api/vms', {
    json: { name: 'm', instance_type: 't2.micro' },
  });
  const snapshot = await owner.expect(201, `/api/vms/${vm}/snapshots`, { json: { name: 's' } });
  const { database_id: database } = await owner.expect(201, '/api/databases', { json: { name: 'd' } });
  const statement = 'CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)';
  const query = { json: { statement, read_only: false } };
  await owner.expect(200, `/api/databases/${database}/query`, query);
  const saved = { json: { name: 'n', text: 'SELECT 1' } };
  const { saved_query_id: savedQuery } = await owner.expect(
    200,
    `/api/databases/${database}/saved-queries`,
    saved,
  );
  const hook = { json: { url: 'http://127.0.0.1:9/hook' } };
  const { id: webhook } = await owner.expect(201, '/api/webhooks', hook);
  const delivery = await owner.expect(201, `/api/webhooks/${webhook}/test`, { method: 'POST' });
  const later = { method: 'POST', headers: { prefer: 'respond-async' } };
  const { operation_id } = await owner.expect(202, `/api/vms/${vm}/console-tickets`, later);
  await admin.expect(201, '/api/admin/plans', { json: { name: `own-${name}` } });
  const invitation = await admin.expect(201, '/api/admin/invitations', { json: {} });
  await owner.expect(201, '/api/encryption-keys', { json: { id: `key-${name}` } });
  const share = await owner.expect(201, '/api/shares', { json: { bucket, name: 'a.txt' } });
  const ids = {
    'buckets/{name}': bucket,
    'uploads/{upload_id}': upload.upload_id,
    'parts/{number}': '1',
    'storage/{id}': object.object_id,
    'shares/{share_id}': share.share_id,
    'encryption-keys/{keyId}': `key-${name}`,
    'access-keys/{id}': accessKey,
    'sessions/{id}': session.id,
    'accounts/{id}': String(account.id),
    'invitations/{id}': invitation.id,
    'vms/{vm_id}': vm,
    'snapshots/{snapshot_id}': snapshot.snapshot_id,
    'ssh-keys/{name}': 'laptop',
    'databases/{database_id}': database,
    'saved-queries/{saved_query_id}': savedQuery,
    'webhooks/{id}': webhook,
    'deliveries/{delivery_id}': delivery.id,
    'operations/{id}': operation_id,
    'plans/{name}': `own-${name}`,
  };
  return { name, node, owner, admin, ids };
}
