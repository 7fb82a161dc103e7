/**
 * A restore drill beside a live cloud with machines, databases and webhooks: nothing of the cloud changes.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';
import { DATABASES, POST } from './databases-kit.ts';
import * as net from './private-network.ts';
import { LosableCloud, POINTS } from './recovery-kit.ts';
import { cannotRunGuests, idleImage, newVm, removeAll } from './vms-kit.ts';

interface Check {
  readonly name: string;
  readonly state: string;
  readonly detail: string;
}

const noGuests = cannotRunGuests();
const STATEMENTS = {
  sqlite: ['CREATE TABLE notes (x INTEGER)', 'INSERT INTO notes VALUES (1), (2)'],
  postgresql: ['CREATE TABLE notes (x INTEGER)', 'INSERT INTO notes VALUES (1), (2)', 'ANALYZE notes'],
  mysql: ['CREATE TABLE notes (x INTEGER)', 'INSERT INTO notes VALUES (1), (2)'],
  mongodb: [],
} as const;
type EngineName = keyof typeof STATEMENTS;

let lost: LosableCloud;
let receiver: WebhookReceiver;
let pointId: string;
let engines: EngineName[] = [];
async function begin(): Promise<void> {
  receiver = await WebhookReceiver.open();
  lost = await LosableCloud.start({ CLOUDLET_FETCH_ALLOW: '127.0.0.1/32' });
  const { user } = lost;
  await user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (let i = 0; i < 3; i++) await user.upload('files', `large-${i}`, randomBytes(200_000));
  const listed: { engine: EngineName; available: boolean }[] = await user.expect(
    200,
    '/api/database-engines',
  );
  engines = listed.filter(({ available }) => available).map(({ engine }) => engine);
  for (const engine of engines) await newDatabaseOf(engine);
  if (!noGuests) {
    const vm = await newVm(user, { name: 'runs', ...(await idleImage(lost.admin)) });
    await user.expect(200, `${vm}/start`, POST);
  }
  const json = { url: receiver.url, events: ['*'] };
  for (const one of [user, lost.admin]) await one.expect(201, '/api/webhooks', { json });
  // So that the point contains waiting deliveries.
  receiver.reply = () => ({ status: 500 });
  await user.expect(201, DATABASES, { json: { name: 'tells-the-webhook' } });
  pointId = (await lost.point()).point_id;
  receiver.reply = () => ({ status: 204 });
}

async function end(): Promise<void> {
  receiver.close();
  if (!noGuests) await removeAll(lost.user);
  await lost.end();
}

async function newDatabaseOf(engine: EngineName): Promise<void> {
  const { user } = lost;
  const made = await user.expect(201, DATABASES, { json: { name: `of-${engine}`, engine } });
  const path = `${DATABASES}/${made.database_id}/query`;
  for (const statement of STATEMENTS[engine])
    await user.expect(200, path, { json: { statement, read_only: false } });
  if (engine !== 'mongodb') return;
  const command = { insert: 'notes', documents: [{ _id: 1 }, { _id: 2 }] };
  await user.expect(200, path, { json: { command, read_only: false } });
}

function drill() {
  return lost.admin.expect(200, `${POINTS}/${pointId}/drill?wait=600`, POST);
}

/** All processes related to this cloud, by their command lines and folders. */
function processes(): string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ');
        const about = `${words} ${readlinkSync(`/proc/${pid}/cwd`)}`;
        return about.includes(lost.root) ? [`${pid} ${words.slice(0, 80)}`] : [];
      } catch {
        return [];
      }
    })
    .sort();
}

/** Listening addresses in this network, and its rules, without the kernel's counters. */
function facts(): string[] {
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/net/${name}`, 'latin1').split('\n'));
  const fields = lines.map((line) => line.trim().split(/\s+/));
  const listening = fields.filter(([, , , state]) => state === '0A').map(([, address = '']) => address);
  const { stdout } = spawnSync('nft', ['--stateless', 'list', 'ruleset'], { encoding: 'utf8' });
  return [...listening, ...stdout.split('\n')].sort();
}

const GROWING = ['size_bytes', 'uptime_seconds'];

async function shown(): Promise<string> {
  const all = ['/api/vms', DATABASES, '/api/buckets'].map((path) => lost.user.expect(200, path));
  const still = (key: string, value: unknown) => (GROWING.includes(key) ? undefined : value);
  return JSON.stringify(await Promise.all(all), still, 1);
}

const skip = net.cannotMakeNetworks();
// A separate network has no rules and ports of others.
if (!net.isInside()) {
  test('beside a live cloud, in its own network', { skip }, () => {
    const { status, output } = net.runInside(fileURLToPath(import.meta.url));
    assert.equal(status, 0, output);
  });
} else
  describe('a drill beside a live cloud', () => {
    before(begin);
    after(end);
    let drilled: { drill: { checks: Check[]; reason: string | null }; state: string };

    test('changes nothing of it, listens nowhere, and sends nothing', async () => {
      const before = { facts: facts(), processes: processes(), shown: await shown() };
      const seen = new Set<string>();
      const changed = new Set<string>();
      let isOver = false;
      const watching = (async () => {
        while (!isOver) {
          const now = processes().filter((one) => !before.processes.includes(one));
          for (const one of now) seen.add(one);
          for (const fact of facts()) if (!before.facts.includes(fact)) changed.add(fact);
          await sleep(50);
        }
      })();
      const delivered = receiver.received.length;
      drilled = await drill();
      isOver = true;
      await watching;
      assert.deepEqual(
        [drilled.drill.reason, drilled.state],
        [null, 'drilled'],
        JSON.stringify(drilled.drill),
      );
      assert.ok(seen.size > 0, 'its processes were seen');
      assert.deepEqual([...changed], []);
      const after = { facts: facts(), processes: processes(), shown: await shown() };
      assert.deepEqual(after, before);
      assert.deepEqual(readdirSync(join(lost.dataDir, 'drill')), []);
      await receiver.reached(delivered + 1);
      const ids = receiver.received.slice(delivered).map(({ id }) => id);
      assert.deepEqual(ids.length, new Set(ids).size, 'each event came once');
    });

    test('opens every database, and says so', () => {
      for (const engine of engines) {
        const check = drilled.drill.checks.find(({ name }) => name === `${engine} databases`);
        assert.equal(check?.state, 'passed', `${engine}: ${JSON.stringify(check)}`);
        assert.match(
          check?.detail ?? '',
          /^\d databases? loaded and opened: 1 table(?: with about 2 rows)?$/,
        );
      }
    });

    test('boots a machine without a network', { skip: noGuests }, () => {
      const check = drilled.drill.checks.find(({ name }) => name === 'machine');
      assert.equal(check?.state, 'passed', JSON.stringify(check));
      assert.match(check?.detail ?? '', /^runs \(vm-[0-9a-z]+\) boots with tcg: its /);
    });
  });
