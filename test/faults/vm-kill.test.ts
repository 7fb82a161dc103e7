/**
 * kill -9 of Cloudlet while machines are created, started, stopped and deleted: rows and guests agree again.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { cannotRunGuests, guestPids, idleImage, NEW_VM } from '../acceptance/vms-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { type Answer, Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { processesIn } from '../harness/leftovers.ts';
import { eventually } from '../harness/waiting.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const isFull = process.env.FAULTS === 'full';
const ROUNDS = rounds(4, 120);
const MACHINES = 3;
const LONGEST_ROUND_MS = 2500;
/** The recovery's own wait for a guest that does not boot far enough to react to the button. */
const env = { CLOUDLET_VM_GRACE_SECONDS: '1', CLOUDLET_SWEEP_GRACE_SECONDS: '1' };
const UNDER_WAY = ['starting', 'stopping', 'deleting'];

type Work = 'start' | 'stop' | 'delete';
interface Known {
  readonly vmId: string;
  /** The state in the last answer; null: the last request was cut off. */
  state: string | null;
  pids: readonly number[];
}

/** Works on one machine after the other, each until it is deleted, and remembers the answers. */
class Lane {
  readonly #random: () => number;
  readonly #machine: object;
  current: Known | undefined;
  readonly deleted: string[] = [];
  readonly answers = new Map<number, number>();
  cutOff = 0;
  #isRunning = false;
  #done: Promise<void> = Promise.resolve();

  /** `machine`: the name of its machines, created one after the other. */
  constructor(random: () => number, machine: object) {
    this.#random = random;
    this.#machine = machine;
  }

  start(client: Client): void {
    this.#isRunning = true;
    this.#done = this.#work(client);
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#done;
  }

  async #work(client: Client): Promise<void> {
    while (this.#isRunning) {
      const vm = this.current;
      if (vm === undefined) await this.#create(client);
      else await this.#change(client, vm);
    }
  }

  async #create(client: Client): Promise<void> {
    const answer = await this.#ask(() => client.call('/api/vms', { json: this.#machine }));
    if (answer?.status === 201) this.current = { vmId: answer.body.vm_id, state: 'created', pids: [] };
  }

  async #change(client: Client, vm: Known): Promise<void> {
    const work = this.#choose(vm.state);
    const path = `/api/vms/${vm.vmId}`;
    vm.state = null;
    const answer = await this.#ask(() =>
      work === 'delete'
        ? client.call(path, { method: 'DELETE' })
        : client.call(`${path}/${work}`, { method: 'POST' }),
    );
    if (answer?.status !== 200) return;
    vm.state = answer.body.state;
    vm.pids = guestPids(vm.vmId);
    if (work !== 'delete') return;
    this.deleted.push(vm.vmId);
    this.current = undefined;
  }

  #choose(state: string | null): Work {
    if (state === 'created') return this.#random() < 0.8 ? 'start' : 'stop';
    if (state === 'running') return 'stop';
    if (state === 'stopped') return this.#random() < 0.5 ? 'start' : 'delete';
    return this.#random() < 0.5 ? 'start' : 'stop';
  }

  async #ask(call: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      const answer = await call();
      this.answers.set(answer.status, (this.answers.get(answer.status) ?? 0) + 1);
      return answer;
    } catch {
      this.cutOff++;
      // The process is dead: its later effects are not answers.
      this.#isRunning = false;
      return undefined;
    }
  }
}

/** Every row is settled, matches its guest, and has the state of the last answer. */
async function check(client: Client, lanes: readonly Lane[]): Promise<void> {
  let rows = new Map<string, string>();
  await eventually('no machine is on its way', async () => {
    const { body } = await client.call('/api/vms');
    rows = new Map(body.map((vm: { vm_id: string; state: string }) => [vm.vm_id, vm.state]));
    return ![...rows.values()].some((state) => UNDER_WAY.includes(state));
  });
  for (const [vmId, state] of rows) {
    assert.equal(guestPids(vmId).length, state === 'running' ? 1 : 0, `${vmId} is ${state}`);
  }
  for (const { current, deleted } of lanes) {
    for (const vmId of deleted) assert.equal(rows.has(vmId), false, `${vmId} was deleted`);
    if (current === undefined) continue;
    const state = rows.get(current.vmId);
    if (current.state !== null) {
      assert.equal(state, current.state, `${current.vmId} was answered to be ${current.state}`);
      assert.deepEqual(guestPids(current.vmId), current.pids, 'the very same guest');
    }
    current.state = state ?? null;
  }
}

/** Lanes whose deletion was cut off but done continue with a new machine. */
async function forgetDeleted(client: Client, lanes: readonly Lane[]): Promise<void> {
  const { body } = await client.call('/api/vms');
  const ids = new Set(body.map((vm: { vm_id: string }) => vm.vm_id));
  for (const lane of lanes) if (lane.current && !ids.has(lane.current.vmId)) lane.current = undefined;
}

async function removeAll(client: Client): Promise<void> {
  for (const { vm_id } of (await client.call('/api/vms')).body) {
    const { status } = await client.call(`/api/vms/${vm_id}/stop?force=true`, { method: 'POST' });
    assert.equal(status, 200);
    assert.equal((await client.call(`/api/vms/${vm_id}`, { method: 'DELETE' })).status, 200);
  }
}

/** Each machine was created and deleted once, and every run ended before the next one began. */
function assertUsage(dataDir: string): number {
  const database = new Database(join(dataDir, 'metadata.db'), { readonly: true });
  const rows = database.prepare('SELECT vm_id, event FROM vm_usage ORDER BY id').all();
  database.close();
  const histories = new Map<string, string>();
  for (const row of rows as { vm_id: string; event: string }[]) {
    histories.set(row.vm_id, `${histories.get(row.vm_id) ?? ''}${row.event} `);
  }
  for (const [vmId, history] of histories) {
    assert.match(history, /^created (?:started stopped )*deleted $/, vmId);
  }
  return histories.size;
}

test('kill -9 while machines come and go: none doubled, none orphaned, usage balanced', {
  skip: cannotRunGuests(),
}, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-vm-kill-'));
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const cloud = await CloudProcess.start({ dataDir, env });
  t.after(() => cloud.crash());
  const { key } = await new Client(cloud.api).newUser();
  // Guests are killed or stopped before they have booted far enough to react to a button.
  const idle = isFull ? {} : await idleImage(await CheckedClient.open(cloud.api, ADMIN_KEY));
  const lanes = Array.from({ length: MACHINES }, () => new Lane(random, { ...NEW_VM, ...idle }));
  for (let round = 0; round < ROUNDS; round++) {
    const client = new Client(cloud.api, key);
    for (const lane of lanes) lane.start(client);
    await sleep(random() * LONGEST_ROUND_MS);
    await cloud.crash();
    for (const lane of lanes) await lane.stop();
    await cloud.start();
    await check(new Client(cloud.api, key), lanes);
    await forgetDeleted(new Client(cloud.api, key), lanes);
  }
  const client = new Client(cloud.api, key);
  const cutOff = lanes.reduce((sum, lane) => sum + lane.cutOff, 0);
  const answers = new Map<number, number>();
  for (const lane of lanes) {
    for (const [status, times] of lane.answers) answers.set(status, (answers.get(status) ?? 0) + times);
  }
  t.diagnostic(`${cutOff} requests cut off in ${ROUNDS} kills; answers: ${JSON.stringify([...answers])}`);
  assert.ok(cutOff >= ROUNDS, 'machines were worked on when the process was killed');
  assert.equal(answers.get(500), undefined);
  await removeAll(client);
  await eventually('what no row knows is swept', () =>
    readdirSync(join(dataDir, 'vms')).every((name) => !name.startsWith('vm-')),
  );
  assert.deepEqual(processesIn(dataDir), []);
  assert.equal(await cloud.stop(), 0);
  t.diagnostic(`${assertUsage(dataDir)} machines made and deleted`);
  rmSync(dataDir, { recursive: true });
});
