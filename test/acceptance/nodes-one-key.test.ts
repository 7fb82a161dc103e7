/**
 * Calls of every kind that change something, each sent to two nodes at once under one Idempotency-Key:
 * one effect, and the same answer twice.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, type Call, Client } from '../harness/client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';

const ROUNDS = 3;
const PASSWORD = 'correct horse battery';

interface Asked {
  readonly path: string;
  readonly method?: string;
  readonly json?: unknown;
  readonly form?: () => FormData;
  /** Public calls are made without a credential. */
  readonly isPublic?: boolean;
  /** How often the effect is there; absent: it cannot be there twice. */
  readonly effects?: () => Promise<number>;
}

describe('one key at two nodes', { skip: noCluster }, () => {
  let cluster: Cluster;
  let nodes: readonly [Client, Client];
  let database: string;
  before(async () => {
    cluster = await Cluster.start(2, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' });
    nodes = cluster.nodes.map(({ api }) => new Client(api, ADMIN_KEY)) as [Client, Client];
    await made('/api/buckets', { name: 'all', versioning: true });
    const { database_id } = await made('/api/databases', { name: 'all' });
    database = `/api/databases/${database_id}`;
    await query('CREATE TABLE notes (text TEXT)');
  });
  after(() => cluster?.stop());

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async function made(path: string, json: unknown): Promise<any> {
    return good(await nodes[0].call(path, { method: 'POST', json }), path);
  }
  async function seen(path: string) {
    return good(await nodes[1].call(path), path);
  }
  async function countOf(path: string, matches: (item: Record<string, unknown>) => boolean) {
    const body = await seen(path);
    return (Array.isArray(body) ? body : body.items).filter(matches).length as number;
  }
  async function query(statement: string) {
    return (await made(`${database}/query`, { statement, read_only: false })).rows;
  }
  async function stored(name: string): Promise<string> {
    return good(await nodes[0].upload('all', name, `content of ${name}`), name).object_id;
  }
  const countRows = async (text: string) =>
    Number((await query(`SELECT count(*) FROM notes WHERE text = '${text}'`))[0][0]);
  const fileOf = (content: string, name = 'rows.csv') => {
    const form = new FormData();
    form.set('file', new Blob([content]), name);
    return form;
  };
  const versionsOf = (name: string) =>
    countOf('/api/buckets/all/files?include_versions=true&limit=1000', (item) => item.name === name);

  /** A new thing for each round, of which the name ends with the number. */
  const kinds: Readonly<Record<string, (n: string) => Promise<Asked> | Asked>> = {
    'create a bucket': (n) => ({
      path: '/api/buckets',
      json: { name: `bucket-${n}` },
      effects: () => countOf('/api/buckets', ({ name }) => name === `bucket-${n}`),
    }),
    'change settings of a bucket': (n) => ({
      path: '/api/buckets/all/settings',
      method: 'PATCH',
      json: { tags: { n } },
    }),
    'delete a bucket': async (n) => {
      await made('/api/buckets', { name: `deleted-${n}` });
      return { path: `/api/buckets/deleted-${n}`, method: 'DELETE' };
    },
    'begin an upload': (n) => ({
      path: '/api/buckets/all/uploads',
      json: { name: `begun-${n}` },
      effects: () => countOf('/api/buckets/all/uploads', ({ name }) => name === `begun-${n}`),
    }),
    upload: (n) => ({
      path: '/api/buckets/all/upload',
      form: () => fileOf('the same', `up-${n}`),
      effects: () => versionsOf(`up-${n}`),
    }),
    'copy an object': async (n) => ({
      path: `/api/storage/${await stored(`from-${n}`)}/copy`,
      json: { name: `copy-${n}` },
      effects: () => versionsOf(`copy-${n}`),
    }),
    'move an object': async (n) => ({
      path: `/api/storage/${await stored(`moving-${n}`)}/move`,
      json: { name: `moved-${n}` },
      effects: () => versionsOf(`moved-${n}`),
    }),
    'delete an object': async (n) => ({
      path: `/api/storage/${await stored(`gone-${n}`)}`,
      method: 'DELETE',
    }),
    'share a file': async (n) => {
      await stored(`shared-${n}`);
      return {
        path: '/api/shares',
        json: { bucket: 'all', name: `shared-${n}` },
        effects: () => countOf('/api/shares', ({ name }) => name === `shared-${n}`),
      };
    },
    'create an encryption key': (n) => ({ path: '/api/encryption-keys', json: { id: `key-${n}` } }),
    'create an access key': (n) => ({
      path: '/api/account/access-keys',
      json: { name: `access-${n}`, scopes: ['storage:read'] },
      effects: () => countOf('/api/account/access-keys', ({ name }) => name === `access-${n}`),
    }),
    'delete an access key': async (n) => {
      const { id } = await made('/api/account/access-keys', { name: `late-${n}`, scopes: ['storage:read'] });
      return { path: `/api/account/access-keys/${id}`, method: 'DELETE' };
    },
    'create a webhook': (n) => ({
      path: '/api/webhooks',
      json: { url: `http://127.0.0.1:9/${n}` },
      effects: () => countOf('/api/webhooks', ({ url }) => url === `http://127.0.0.1:9/${n}`),
    }),
    'test a webhook': async (n) => {
      const { id } = await made('/api/webhooks', { url: `http://127.0.0.1:9/test-${n}` });
      return {
        path: `/api/webhooks/${id}/test`,
        effects: () => countOf(`/api/webhooks/${id}/deliveries`, () => true),
      };
    },
    'rotate a secret': async (n) => {
      const { id } = await made('/api/webhooks', { url: `http://127.0.0.1:9/rotate-${n}` });
      return { path: `/api/webhooks/${id}/rotate-secret` };
    },
    'create an account': (n) => ({
      path: '/api/admin/accounts',
      json: { username: `made-${n}`, email: `made-${n}@example.org`, password: PASSWORD },
      effects: () => countOf('/api/admin/accounts?limit=1000', ({ username }) => username === `made-${n}`),
    }),
    'add credits': async (n) => {
      const json = { username: `rich-${n}`, email: `rich-${n}@example.org`, password: PASSWORD };
      const { id, credits } = await made('/api/admin/accounts', json);
      return {
        path: `/api/admin/accounts/${id}/credits`,
        json: { amount: 1, reason: 'test' },
        effects: async () => (await seen(`/api/admin/accounts/${id}`)).credits - credits,
      };
    },
    'suspend an account': async (n) => {
      const json = { username: `late-${n}`, email: `late-${n}@example.org`, password: PASSWORD };
      const { id } = await made('/api/admin/accounts', json);
      return { path: `/api/admin/accounts/${id}/suspend`, json: { reason: 'test' } };
    },
    'create a plan': (n) => ({
      path: '/api/admin/plans',
      json: { name: `plan-${n}` },
      effects: () => countOf('/api/admin/plans', ({ name }) => name === `plan-${n}`),
    }),
    register: (n) => ({
      path: '/api/register',
      isPublic: true,
      json: { username: `new-${n}`, email: `new-${n}@example.org`, password: PASSWORD },
      effects: () => countOf('/api/admin/accounts?limit=1000', ({ username }) => username === `new-${n}`),
    }),
    'join by an invitation': async (n) => {
      const { id, url } = await made('/api/admin/invitations', { max_uses: 5 });
      return {
        path: '/api/join',
        isPublic: true,
        json: {
          token: url.split('#token=')[1],
          username: `joined-${n}`,
          email: `j-${n}@example.org`,
          password: PASSWORD,
        },
        effects: async () =>
          (await seen('/api/admin/invitations')).find((item: { id: string }) => item.id === id).uses,
      };
    },
    'revoke an invitation': async () => {
      const { id } = await made('/api/admin/invitations', {});
      return { path: `/api/admin/invitations/${id}`, method: 'DELETE' };
    },
    'create a database': (n) => ({
      path: '/api/databases',
      json: { name: `database-${n}` },
      effects: () => countOf('/api/databases', ({ name }) => name === `database-${n}`),
    }),
    'insert by a statement': (n) => ({
      path: `${database}/query`,
      json: { statement: `INSERT INTO notes VALUES ('by statement ${n}')`, read_only: false },
      effects: () => countRows(`by statement ${n}`),
    }),
    'insert a row': (n) => ({
      path: `${database}/rows/change`,
      json: { table: 'notes', changes: [{ action: 'insert', values: { text: `by row ${n}` } }] },
      effects: () => countRows(`by row ${n}`),
    }),
    'import rows': (n) => ({
      path: `${database}/rows/import?table=notes`,
      form: () => fileOf(`text\nby import ${n}\n`),
      effects: () => countRows(`by import ${n}`),
    }),
    'load a dump': (n) => ({
      path: `${database}/load`,
      form: () => fileOf(`INSERT INTO notes VALUES ('by load ${n}');`, 'dump.sql'),
      effects: () => countRows(`by load ${n}`),
    }),
    'save a query': (n) => ({
      path: `${database}/saved-queries`,
      json: { name: `saved-${n}`, text: 'SELECT 1' },
      effects: () => countOf(`${database}/saved-queries`, ({ name }) => name === `saved-${n}`),
    }),
    'delete a database': async (n) => {
      const { database_id: id } = await made('/api/databases', { name: `gone-${n}` });
      return { path: `/api/databases/${id}`, method: 'DELETE' };
    },
    'add an SSH key': (n) => ({
      path: '/api/account/ssh-keys',
      json: { name: `ssh-${n}`, public_key: `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}` },
      effects: () => countOf('/api/account/ssh-keys', ({ name }) => name === `ssh-${n}`),
    }),
    'create a machine': (n) => ({
      path: '/api/vms',
      json: { name: `vm-${n}`, instance_type: 't2.micro' },
      effects: () => countOf('/api/vms', ({ name }) => name === `vm-${n}`),
    }),
    'take a snapshot': async (n) => {
      const { vm_id: id } = await made('/api/vms', { name: `snap-${n}`, instance_type: 't2.micro' });
      return {
        path: `/api/vms/${id}/snapshots`,
        json: { name: 'one' },
        effects: () => countOf(`/api/vms/${id}/snapshots`, () => true),
      };
    },
    'rebuild a machine': async (n) => {
      const { vm_id: id } = await made('/api/vms', { name: `again-${n}`, instance_type: 't2.micro' });
      return { path: `/api/vms/${id}/rebuild`, json: {} };
    },
    'change the schedule of recovery points': async (n) => ({
      path: '/api/disaster-recovery/schedule',
      method: 'PATCH',
      json: { keep: { last: 3 + Number(n) } },
    }),
    'publish a port': async (n) => {
      const { vm_id: id } = await made('/api/vms', { name: `port-${n}`, instance_type: 't2.micro' });
      return {
        path: `/api/vms/${id}/ports`,
        json: { port: 80 },
        effects: () => countOf(`/api/vms/${id}/ports`, () => true),
      };
    },
    'delete a machine': async (n) => {
      const { vm_id: id } = await made('/api/vms', { name: `vm-gone-${n}`, instance_type: 't2.micro' });
      await made(`/api/vms/${id}/stop`, {});
      return { path: `/api/vms/${id}`, method: 'DELETE' };
    },
  };

  for (const [name, prepare] of Object.entries(kinds)) {
    test(name, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const asked = await prepare(String(round));
        const key = `${name.replaceAll(' ', '-')}-${round}`;
        const answers = await Promise.all(nodes.map((node) => answerOf(node, asked, key)));
        const [one, two] = answers as [Answer, Answer];
        assert.ok(one.status < 300, `${one.status} ${JSON.stringify(one.body)}`);
        assert.deepEqual([two.status, two.body], [one.status, one.body]);
        if (asked.effects !== undefined) assert.equal(await asked.effects(), 1);
      }
    });
  }
});

/** Asked again while a node still makes the first answer under the key, as the API says to do. */
async function answerOf(node: Client, asked: Asked, key: string): Promise<Answer> {
  const { path, method = 'POST', json, form, isPublic = false } = asked;
  for (;;) {
    const sent = form === undefined ? { json } : { body: form() };
    const call: Call = Object.assign(
      { method, headers: { 'idempotency-key': key } },
      json || form ? sent : {},
    );
    const answer = await (isPublic ? node.as(undefined) : node).call(path, call);
    if (answer.body?.code !== 'idempotency_in_flight') return answer;
    await sleep(20);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
function good({ status, body }: Answer, what: string): any {
  assert.ok(status < 300, `${what}: ${status} ${JSON.stringify(body)}`);
  return body;
}
