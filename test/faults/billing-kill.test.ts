/**
 * kill -9 each second while credits are granted and spent: the books are complete, and nothing is in them
 * twice.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertBooks, msOf, runsOf } from '../acceptance/billing-kit.ts';
import { cannotRunGuests, NEW_VM } from '../acceptance/vms-kit.ts';
import { type Account, type Answer, Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { processesIn } from '../harness/leftovers.ts';
import { eventually } from '../harness/waiting.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const ROUNDS = rounds(4, 120);
const ROUND_MS = 1000;
const MACHINES = 2;
const GRANTERS = 4;
const MICRO = 1e6;
const env = {
  CLOUDLET_VM_GRACE_SECONDS: '1',
  CLOUDLET_RATE_REQUESTS: '1000000',
  CLOUDLET_SWEEP_GRACE_SECONDS: '1',
};

interface Grant {
  /** Also its Idempotency-Key. */
  readonly reason: string;
  readonly amountMicro: number;
  isAcknowledged: boolean;
}

/** All concurrent work of clients, until their process is killed. */
class Load {
  readonly #random: () => number;
  readonly #account: Account;
  readonly grants: Grant[] = [];
  readonly answers = new Map<number, number>();
  readonly vmIds: string[] = [];
  cutOff = 0;
  #isRunning = false;
  #lanes: Promise<void>[] = [];
  #client = new Client('');

  constructor(random: () => number, account: Account) {
    this.#random = random;
    this.#account = account;
  }

  start(base: string): void {
    this.#client = new Client(base, this.#account.api_key);
    this.#isRunning = true;
    const work = [
      ...Array.from({ length: GRANTERS }, () => () => this.#grant()),
      ...this.vmIds.map((vmId) => () => this.#switch(vmId)),
      () => this.#upload(),
      () => this.#read(),
    ];
    this.#lanes = work.map(async (step) => {
      while (this.#isRunning) await step();
    });
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#lanes);
  }

  /** Repeats unacknowledged calls with the same key. */
  async finish(base: string): Promise<void> {
    this.#client = new Client(base);
    for (const grant of this.grants.filter(({ isAcknowledged }) => !isAcknowledged)) {
      await eventually('the grant is answered', () => this.#send(grant));
    }
  }

  async #send(grant: Grant): Promise<boolean> {
    const answer = await this.#ask(() =>
      this.#client.as(ADMIN_KEY).call(`/api/admin/accounts/${this.#account.id}/credits`, {
        json: { amount: grant.amountMicro / MICRO, reason: grant.reason },
        headers: { 'idempotency-key': grant.reason },
      }),
    );
    grant.isAcknowledged ||= answer?.status === 200;
    return grant.isAcknowledged;
  }

  async #grant(): Promise<void> {
    const amountMicro = 1 + Math.floor(this.#random() * MICRO);
    const grant = { reason: `grant-number-${this.grants.length}`, amountMicro, isAcknowledged: false };
    this.grants.push(grant);
    await this.#send(grant);
  }

  async #switch(vmId: string): Promise<void> {
    const work = this.#random() < 0.5 ? 'start' : 'stop?force=true';
    await this.#ask(() => this.#client.call(`/api/vms/${vmId}/${work}`, { method: 'POST' }));
  }

  async #upload(): Promise<void> {
    const size = 1 + Math.floor(this.#random() * 100_000);
    await this.#ask(() => this.#client.upload('kept', `object-${size % 10}`, Buffer.alloc(size)));
  }

  async #read(): Promise<void> {
    await this.#ask(() => this.#client.call('/api/billing/usage'));
    await sleep(20);
  }

  async #ask(call: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      const answer = await call();
      this.answers.set(answer.status, (this.answers.get(answer.status) ?? 0) + 1);
      return answer;
    } catch {
      this.cutOff++;
      this.#isRunning = false;
      return undefined;
    }
  }
}

async function settleDown(client: Client, vmIds: readonly string[]): Promise<void> {
  for (const vmId of vmIds) {
    await eventually('the machine is stopped', async () => {
      const { status, body } = await client.call(`/api/vms/${vmId}/stop?force=true`, { method: 'POST' });
      return status === 200 && body.state === 'stopped';
    });
  }
  // Reads in one second share a settlement.
  await sleep(1100);
}

/** The machine time in the report, compared with the recorded runs, ms. */
function assertTime(
  dataDir: string,
  items: { meter: string; resource_id: string; quantity: number }[],
): number {
  let total = 0;
  for (const { meter, resource_id, quantity } of items) {
    if (meter !== 'vm.time') continue;
    const runs = runsOf(dataDir, resource_id);
    const charged = quantity * 3_600_000;
    assert.ok(Math.abs(charged - msOf(runs)) <= 20 * runs.length, `${charged} ms of ${msOf(runs)} ms`);
    total += charged;
  }
  return total;
}

test('kill -9 while credits are granted and spent: whole books, and every grant once', {
  skip: cannotRunGuests(),
}, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-billing-kill-'));
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const cloud = await CloudProcess.start({ dataDir, env });
  t.after(() => cloud.crash());
  const account = await new Client(cloud.api).register();
  const load = new Load(randomFrom(seed), account);
  const first = new Client(cloud.api, account.api_key);
  assert.equal((await first.call('/api/buckets', { json: { name: 'kept' } })).status, 201);
  for (let i = 0; i < MACHINES; i++) {
    load.vmIds.push((await first.call('/api/vms', { json: NEW_VM })).body.vm_id);
  }
  for (let round = 0; round < ROUNDS; round++) {
    load.start(cloud.api);
    await sleep(ROUND_MS);
    await cloud.crash();
    await load.stop();
    assertBooks(dataDir);
    await cloud.start();
  }
  await load.finish(cloud.api);
  const client = new Client(cloud.api, account.api_key);
  await settleDown(client, load.vmIds);
  const { body: report } = await client.call('/api/billing/usage');
  const transfers = assertBooks(dataDir);
  assert.ok(load.cutOff >= ROUNDS, 'requests were under way when the process was killed');
  assert.equal(load.answers.get(500), undefined);
  for (const { reason, amountMicro } of load.grants) {
    const booked = transfers.filter(({ reference }) => reference.endsWith(`: ${reason}`));
    assert.deepEqual(
      booked.map(({ amount_micro }) => Number(amount_micro)),
      [amountMicro],
      reason,
    );
  }
  const runMs = assertTime(dataDir, report.items);
  assert.equal(report.credits.held, 0);
  t.diagnostic(
    `${load.grants.length} grants, each once; ${transfers.length} transfers; ${load.cutOff} cut off`,
  );
  t.diagnostic(`machines ran ${Math.round(runMs)} ms; answers ${JSON.stringify([...load.answers])}`);
  for (const vmId of load.vmIds) await client.call(`/api/vms/${vmId}`, { method: 'DELETE' });
  await eventually('no guest is left', () => processesIn(dataDir).length === 0);
  assert.equal(await cloud.stop(), 0);
  rmSync(dataDir, { recursive: true });
});
