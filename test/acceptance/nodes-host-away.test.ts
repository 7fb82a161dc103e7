/** The host node is down: a front node reads rows, and refuses other calls without any effect. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Call } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';

describe('while the host node is away', { skip: noCluster }, () => {
  let cluster: Cluster;
  let host: CloudProcess;
  let owner: CheckedClient;
  let vm: string;
  let database: string;
  before(async () => {
    cluster = await Cluster.start(2);
    const [first, front] = cluster.nodes as [CloudProcess, CloudProcess];
    host = first;
    const anyone = await CheckedClient.open(front.api);
    owner = anyone.as((await anyone.register()).api_key);
    const machine = { name: 'm', instance_type: 't2.micro' };
    vm = `/api/vms/${(await owner.expect(201, '/api/vms', { json: machine })).vm_id}`;
    const made = await owner.expect(201, '/api/databases', { json: { name: 'd' } });
    database = `/api/databases/${made.database_id}`;
    await query('CREATE TABLE notes (text TEXT)');
    await owner.expect(200, `${database}/saved-queries`, { json: { name: 's', text: 'SELECT 1' } });
    await host.crash();
  });
  after(() => cluster?.stop());

  const query = (statement: string) =>
    owner.expect(200, `${database}/query`, { json: { statement, read_only: false } });
  const form = (content: string, name: string) => {
    const body = new FormData();
    body.set('file', new Blob([content]), name);
    return { body };
  };

  test('calls that need it are refused with 503, and say when to try again', async () => {
    const insert = { table: 'notes', changes: [{ action: 'insert', values: { text: 'late' } }] };
    const calls: readonly (readonly [string, Call])[] = [
      [`${vm}/start`, { method: 'POST' }],
      [`${vm}/stop`, { method: 'POST' }],
      [`${vm}/rebuild`, { json: {} }],
      [`${vm}/snapshots`, { json: { name: 'late' } }],
      [`${vm}/snapshots`, {}],
      [`${vm}/ports`, { json: { port: 80 } }],
      [`${vm}/console-tickets`, { method: 'POST' }],
      [`${vm}/log`, {}],
      [vm, { method: 'DELETE' }],
      ['/api/vms', { json: { name: 'late', instance_type: 't2.micro' } }],
      ['/api/databases', { json: { name: 'late' } }],
      [`${database}/query`, { json: { statement: "INSERT INTO notes VALUES ('late')", read_only: false } }],
      [`${database}/rows/read`, { json: { table: 'notes' } }],
      [`${database}/rows/change`, { json: insert }],
      [`${database}/rows/import?table=notes`, form('text\nlate\n', 'rows.csv')],
      [`${database}/rows/export?table=notes`, {}],
      [`${database}/load`, form("INSERT INTO notes VALUES ('late');", 'dump.sql')],
      [`${database}/dump`, {}],
      [`${database}/tables`, {}],
      [database, { method: 'DELETE' }],
    ];
    for (const [path, call] of calls) {
      const { status, headers, body } = await owner.call(path, call);
      assert.deepEqual([status, body.code], [503, 'host_unreachable'], `${path}: ${JSON.stringify(body)}`);
      assert.equal(headers.get('retry-after'), '5', path);
    }
  });

  test('lists, and what rows tell, are read as before', async () => {
    for (const path of ['/api/vms', '/api/databases', `${database}/saved-queries`, `${vm}/ports`])
      assert.equal((await owner.expect(200, path)).length, path.endsWith('/ports') ? 0 : 1, path);
    for (const path of [vm, database, '/api/images', `${vm}/metrics`, `${database}/metrics`])
      await owner.expect(200, path);
    await owner.expect(201, '/api/buckets', { json: { name: 'goes-on' } });
  });

  test('once it is back its calls go on, and none of those that were refused had an effect', async () => {
    await host.start();
    const { rows } = await eventually('the host answers behind the front', async () => {
      const statement = { json: { statement: 'SELECT count(*) FROM notes' } };
      const { status, body } = await owner.call(`${database}/query`, statement);
      return status === 200 ? body : null;
    });
    assert.deepEqual(rows, [[0]]);
    assert.equal((await owner.expect(200, '/api/vms')).length, 1);
    assert.equal((await owner.expect(200, '/api/databases')).length, 1);
    assert.deepEqual(await owner.expect(200, `${vm}/ports`), []);
  });
});
