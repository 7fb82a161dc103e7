import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { NOBODY } from '../../calls/principal.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { SamplesStore } from '../../metadata/samples-store.ts';
import { formatTime } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { Meters } from '../../platform/prometheus.ts';
import { type AccountFixture, openAccountFixture } from '../../testing/account-fixture.ts';
import type { GuestSample } from '../hypervisor.ts';
import { type MeasuredVm, Metrics, meterVms } from './metrics.ts';
import { Sampler, VM_SAMPLES } from './sampler.ts';

const MIB = 1_048_576;
const SAMPLE: GuestSample = {
  at: 0,
  cpuMs: 0,
  memoryUsedBytes: 256 * MIB,
  memoryTotalBytes: 1024 * MIB,
  residentBytes: 300 * MIB,
  diskReadBytes: 10,
  diskWriteBytes: 20,
  networkRxBytes: null,
  networkTxBytes: null,
};

let fixture: AccountFixture;
let accountId: number;
let vms: MeasuredVm[];
/** The engine's report about each guest; missing: the engine hangs. */
const engine = new Map<string, GuestSample | null>();
const asked: string[] = [];
const traffic = { inBytes: 0, outBytes: 0, connections: 0 };
let sampler: Sampler;
let metrics: Metrics;

beforeEach(async () => {
  fixture = await openAccountFixture();
  const fields = { username: 'owner', email: 'o@example.org', password: 'correct horse' };
  accountId = (await fixture.accounts.register(BACKGROUND, fields)).id;
  vms = [];
  asked.length = 0;
  engine.clear();
  Object.assign(traffic, { inBytes: 0, outBytes: 0 });
  restart();
});
afterEach(() => fixture.close());

/** As in a new process, which knows only stored state. */
function restart(): void {
  const { metadata, clock } = fixture;
  const store = new SamplesStore(metadata, VM_SAMPLES);
  sampler = new Sampler({
    metadata,
    clock,
    samples: store,
    timeoutMs: 20,
    ingress: { traffic: () => traffic },
    hypervisor: {
      sample: (vmId) => {
        asked.push(vmId);
        const sample = engine.get(vmId);
        return sample === undefined ? new Promise(() => undefined) : Promise.resolve(sample);
      },
    },
    running: () => vms.filter(({ state }) => state === 'running'),
  });
  const find = async (_: unknown, vmId: string) => vms.find((vm) => vm.vm_id === vmId) ?? assert.fail(vmId);
  metrics = new Metrics({ store, clock, sampler, find });
}

async function addVm(name: string, vcpus = 2): Promise<string> {
  const now = fixture.clock.now();
  await fixture.metadata.commit([
    {
      sql: `INSERT INTO vms (vm_id, account_id, name, instance_type, region, tags, vcpus, memory_mb, disk_gb,
              price_micro, image_id, ssh_keys, ports, outbound, uuid, mac, state, desired_state,
              state_changed_at, created_at)
            VALUES (?, ?, 'n', 't2.micro', 'r', '', ?, 1024, 30, 1, 'tiny', '[]', '[22]', 0, ?, ?,
              'running', 'running', ?, ?)`,
      params: [name, accountId, vcpus, name, name, now, now],
    },
  ]);
  const row = await fixture.metadata.get<{ id: number }>('SELECT id FROM vms WHERE vm_id = ?', name);
  const shape = { vcpus, memory_mb: 1024, account_id: accountId, state: 'running', started_at: now } as const;
  vms.push({ id: row?.id ?? 0, vm_id: name, ...shape });
  engine.set(name, SAMPLE);
  return name;
}

function change(vmId: string, changes: Partial<MeasuredVm>): void {
  vms = vms.map((vm) => (vm.vm_id === vmId ? { ...vm, ...changes } : vm));
}

/** Five seconds later; each of its processors was busy for `busyMs` of them. */
async function step(vmId: string, cpuMs: number): Promise<void> {
  fixture.clock.advance(5000);
  engine.set(vmId, { ...SAMPLE, cpuMs, diskReadBytes: cpuMs });
  await sampler.tick();
}

const read = (vmId: string, range = {}) => metrics.read(NOBODY, vmId, range);

async function countRows(stepSeconds: number): Promise<number> {
  const sql = 'SELECT count(*) AS n FROM vm_samples WHERE step_seconds = ?';
  return (await fixture.metadata.get<{ n: number }>(sql, stepSeconds))?.n ?? -1;
}

test('the share of the processors comes from what they worked between two readings', async () => {
  const vm = await addVm('vm-a');
  await step(vm, 1000);
  await step(vm, 6000);
  const shown = await read(vm);
  assert.equal(shown.cpu_percent, 50);
  assert.equal(shown.memory_percent, 25);
  assert.equal(shown.memory_used_mb, 256);
  assert.equal(shown.disk_read_bytes, 6000);
  assert.equal(shown.uptime_seconds, 10);
  assert.equal(shown.history, undefined);
  assert.equal(shown.timestamp, formatTime(fixture.clock.now()));
  await step(vm, 60_000);
  assert.equal((await read(vm)).cpu_percent, 100);
  // The wall clock jumps; the work of five monotonic seconds stays the same.
  fixture.clock.jump(3_600_000);
  await step(vm, 62_500);
  assert.equal((await read(vm)).cpu_percent, 25);
});

test('the first share of a run is that since its start', async () => {
  const vm = await addVm('vm-a');
  engine.set(vm, { ...SAMPLE, cpuMs: 30 });
  fixture.clock.advance(20);
  assert.equal((await read(vm)).cpu_percent, null, 'the kernel counts in ticks of 10 ms');
  restart();
  fixture.clock.advance(280);
  engine.set(vm, { ...SAMPLE, cpuMs: 150 });
  assert.equal((await read(vm)).cpu_percent, 25);
  fixture.clock.advance(1000);
  assert.equal((await read(vm)).cpu_percent, 25, 'until the next tick');
  assert.equal(asked.length, 2);
});

test('a run whose beginning Cloudlet did not see has a share one second after the first reading', async () => {
  const vm = await addVm('vm-a');
  fixture.clock.advance(3_600_000);
  engine.set(vm, { ...SAMPLE, cpuMs: 1_000_000 });
  await sampler.tick();
  assert.equal((await read(vm)).cpu_percent, null);
  fixture.clock.advance(1000);
  engine.set(vm, { ...SAMPLE, cpuMs: 1_001_000 });
  assert.equal((await read(vm)).cpu_percent, 50);
});

test('the counters and the share of a run do not go on in the next', async () => {
  const vm = await addVm('vm-a');
  traffic.inBytes = 500;
  await step(vm, 1000);
  change(vm, { state: 'stopped' });
  await sampler.tick();
  fixture.clock.advance(1);
  change(vm, { state: 'running', started_at: fixture.clock.now() });
  traffic.inBytes = 60;
  await step(vm, 2000);
  const shown = await read(vm);
  assert.equal(shown.cpu_percent, 20);
  assert.equal(shown.network_rx_bytes, 60);
});

test('after a restart the bytes of the run so far are still counted', async () => {
  const vm = await addVm('vm-a');
  Object.assign(traffic, { inBytes: 500, outBytes: 50 });
  await step(vm, 1000);
  Object.assign(traffic, { inBytes: 7, outBytes: 1 });
  restart();
  await step(vm, 2000);
  const shown = await read(vm);
  assert.equal(shown.network_rx_bytes, 507);
  assert.equal(shown.network_tx_bytes, 51);
});

test('what the engine counts itself is not replaced', async () => {
  const vm = await addVm('vm-a');
  traffic.inBytes = 500;
  engine.set(vm, { ...SAMPLE, networkRxBytes: 3 });
  await sampler.tick();
  assert.equal((await read(vm)).network_rx_bytes, 3);
  assert.equal((await read(vm)).network_tx_bytes, 0);
});

test('not running: zeros and the state; running but unknown: null', async () => {
  const vm = await addVm('vm-a');
  engine.set(vm, null);
  const unknown = await read(vm);
  assert.equal(unknown.state, 'running');
  for (const [name, value] of Object.entries(unknown)) {
    if (/percent|_mb|_bytes/.test(name)) assert.equal(value, null, name);
  }
  change(vm, { state: 'stopped', started_at: null });
  const zeros = await read(vm);
  assert.equal(zeros.state, 'stopped');
  for (const [name, value] of Object.entries(zeros)) {
    if (/percent|_mb|_bytes|_seconds/.test(name)) assert.equal(value, 0, name);
  }
});

test('old figures are not shown as of now', async () => {
  const vm = await addVm('vm-a');
  await step(vm, 1000);
  engine.set(vm, null);
  fixture.clock.advance(15_000);
  assert.equal((await read(vm)).disk_read_bytes, null);
});

test('a sample that hangs holds up no other, and is not asked for again', async () => {
  const hung = Array.from({ length: 20 }, (_, i) => `vm-hung${i}`);
  for (const name of hung) {
    await addVm(name);
    engine.delete(name);
  }
  const vm = await addVm('vm-z');
  await step(vm, 1000);
  await step(vm, 2000);
  assert.equal(await countRows(5), 2);
  assert.equal(asked.filter((name) => name === 'vm-hung0').length, 1);
  assert.equal(asked.filter((name) => name === vm).length, 2);
});

test('all machines of a tick are one commit, and one deleted meanwhile spoils it for nobody', async () => {
  await addVm('vm-a');
  const vm = await addVm('vm-b');
  await fixture.metadata.commit([{ sql: 'DELETE FROM vms WHERE vm_id = ?', params: ['vm-a'] }]);
  const { commit } = fixture.metadata;
  let commits = 0;
  fixture.metadata.commit = (statements) => {
    commits++;
    return commit.call(fixture.metadata, statements);
  };
  await step(vm, 1000);
  assert.equal(commits, 1);
  assert.equal(await countRows(5), 1);
});

test('readings become coarse ones, and are pruned after an hour and a month', async () => {
  const vm = await addVm('vm-a', 1);
  const start = formatTime(fixture.clock.now());
  // Busy for a tenth of the time for five minutes, then for half of it.
  for (let i = 1; i <= 60; i++) await step(vm, i * 500);
  for (let i = 1; i <= 61; i++) await step(vm, 30_000 + i * 2500);
  assert.equal(await countRows(300), 2);
  fixture.clock.advance(2 * 3_600_000);
  await step(vm, 500_000);
  assert.equal(await countRows(5), 1);
  const history = (await read(vm, { from: start })).history ?? [];
  assert.equal(history.length, 4);
  assert.deepEqual(
    history.slice(0, 2).map(({ timestamp, cpu_percent }) => [timestamp, cpu_percent]),
    [
      ['2026-01-01 00:00:00', 10],
      ['2026-01-01 00:05:00', 49.3],
    ],
  );
  assert.equal(history[0]?.disk_read_bytes, 59 * 500);
  assert.equal(history[0]?.memory_percent, 25);
  fixture.clock.advance(31 * 24 * 3_600_000);
  await step(vm, 500_000);
  const left = (await read(vm, { from: start, step: 86_400 })).history ?? [];
  assert.equal(left.length, 1);
});

test('history is given in the steps that are asked for', async () => {
  const vm = await addVm('vm-a', 1);
  for (let i = 1; i <= 12; i++) await step(vm, i * i * 100);
  const fine = (await read(vm, { from: '2026-01-01T00:00:00Z' })).history ?? [];
  assert.equal(fine.length, 12);
  const from = '2026-01-01T01:00:00+01:00';
  const history = (await read(vm, { from, to: '2026-01-01 00:00:40', step: 20 })).history ?? [];
  assert.deepEqual(
    history.map(({ timestamp, cpu_percent, disk_read_bytes }) => [timestamp, cpu_percent, disk_read_bytes]),
    [
      ['2026-01-01 00:00:00', 6, 900],
      ['2026-01-01 00:00:20', 20, 4900],
    ],
  );
});

test('a range that makes no sense is refused by the name of its field', async () => {
  const vm = await addVm('vm-a');
  const cases = [
    [{ from: 'yesterday' }, 'from'],
    [{ from: '2026-02-30 00:00:00' }, 'from'],
    [{ to: '2026-01-01' }, 'to'],
    [{ to: '2026-01-01 25:00:00' }, 'to'],
    [{ from: '2026-01-02 00:00:00', to: '2026-01-01 00:00:00' }, 'from'],
    [{ from: '2025-12-01 00:00:00', step: 5 }, 'step'],
    [{ from: '1990-01-01 00:00:00', step: 300 }, 'step'],
  ] as const;
  for (const [range, field] of cases) {
    await assert.rejects(
      read(vm, range),
      (error) => isAppError(error, 'invalid_request') && error.fields?.[0]?.field === field,
      JSON.stringify(range),
    );
  }
});

test('Prometheus gets every running machine, and nothing that is not known', async () => {
  const vm = await addVm('vm-a');
  const silent = await addVm('vm-b');
  engine.set(silent, null);
  await step(vm, 1500);
  const meters = new Meters();
  meterVms(meters, { sampler, counts: async () => [{ state: 'running', count: 2 }] });
  const text = await meters.render({ details: true });
  const labels = (vmId: string) => `{vm_id="${vmId}",account="${accountId}"}`;
  assert.ok(text.includes(`cloudlet_vm_up${labels(vm)} 1\n`));
  assert.ok(text.includes(`cloudlet_vm_up${labels(silent)} 0\n`));
  assert.ok((await meters.render()).includes('cloudlet_vms{state="running"} 2\n'));
  assert.ok(text.includes(`cloudlet_vm_cpu_seconds_total${labels(vm)} 1.5\n`));
  assert.ok(text.includes(`cloudlet_vm_memory_resident_bytes${labels(vm)} ${300 * MIB}\n`));
  assert.ok(!text.includes(`cloudlet_vm_disk_read_bytes_total${labels(silent)}`));
});
