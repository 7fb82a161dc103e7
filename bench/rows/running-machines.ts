/** Running machines: their cost for the control plane, the speed of their list, and their traffic. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  BYTES_SCRIPT,
  type Endpoint,
  fromGuest,
  RECEIVER_PORT,
  SENDER_PORT,
  toGuest,
} from '../guest-bytes.ts';
import { banner, forwardOf, launchLineOf } from '../hand-launch.ts';
import { cpuMs } from '../process-figures.ts';
import { compare, interleave, median } from '../ratios.ts';
import { ratioRow } from '../table.ts';
import {
  bodyOf,
  type Cloud,
  liftQuotas,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';

const VM = { name: 'bench', instance_type: 't2.micro' };
const RUNNING = 8;
const MOST_SHARE = 0.03;
/** Until guests that respond have completed their boot. */
const QUIET_MS = 20_000;
const ROWS = 1000;
const AT_ONCE = 20;
const MOST_LIST_MS = 20;
const LISTINGS = 21;
const AT_LEAST = 0.6;

async function running(cloud: Cloud, more: object = {}): Promise<{ vmId: string; host: string }> {
  const { vm_id: vmId, ip_address: host } = await bodyOf(cloud.client, '/api/vms', {
    json: { ...VM, ...more },
  });
  await bodyOf(cloud.client, `/api/vms/${vmId}/start`, { method: 'POST' });
  await banner({ host, port: 2222 });
  return { vmId, host };
}

async function ended(cloud: Cloud, vmIds: readonly string[]): Promise<void> {
  for (const vmId of vmIds)
    await bodyOf(cloud.client, `/api/vms/${vmId}/stop?force=true`, { method: 'POST' });
}

async function idleCost(options: RunOptions, cloud: Cloud): Promise<Row> {
  const started = await Promise.all(Array.from({ length: RUNNING }, () => running(cloud)));
  const vms = started.map(({ vmId }) => vmId);
  await sleep(QUIET_MS);
  const { pid } = cloud.process;
  const [began, before] = [performance.now(), cpuMs(pid)];
  await sleep(options.quick ? 10_000 : 60_000);
  const ms = performance.now() - began;
  const share = (cpuMs(pid) - before) / ms;
  await ended(cloud, vms);
  return {
    work: `${RUNNING} machines that run: control plane`,
    target: `≤ ${MOST_SHARE * 100} % of one core`,
    reached: `**${(share * 100).toFixed(2)} %**`,
    isMet: share <= MOST_SHARE,
    detail: `over ${Math.round(ms / 1000)} s`,
  };
}

async function listing(cloud: Cloud): Promise<Row> {
  const count = async () => (await bodyOf(cloud.client, `/api/vms?limit=${ROWS}`, {})).length as number;
  for (let have = await count(); have < ROWS; have = await count()) {
    const makers = Math.min(AT_ONCE, ROWS - have);
    await Promise.all(Array.from({ length: makers }, () => bodyOf(cloud.client, '/api/vms', { json: VM })));
  }
  const times: number[] = [];
  let bytes = 0;
  for (let i = 0; i < LISTINGS; i++) {
    const began = performance.now();
    bytes = (await (await cloud.client.fetch(`/api/vms?limit=${ROWS}`)).arrayBuffer()).byteLength;
    times.push(performance.now() - began);
  }
  const ms = median(times);
  return {
    work: `list ${ROWS} machines`,
    target: `≤ ${MOST_LIST_MS} ms`,
    reached: `**${ms.toFixed(1)} ms**`,
    isMet: ms <= MOST_LIST_MS,
    detail: `median of ${LISTINGS}, ${Math.round(bytes / 1024)} KiB; slowest ${Math.max(...times).toFixed(1)} ms`,
  };
}

async function throughFront(options: RunOptions, cloud: Cloud): Promise<Row[]> {
  const { vmId, host } = await running(cloud, { user_data: BYTES_SCRIPT });
  const line = launchLineOf(vmId);
  const ms = options.quick ? 1000 : 4000;
  const rounds = options.quick ? 3 : 7;
  const row = async (
    work: string,
    port: number,
    measure: (endpoint: Endpoint, ms: number) => Promise<number>,
  ): Promise<Row> => {
    const { direct, front } = await interleave(rounds, {
      direct: () => measure(forwardOf(line, port), ms),
      front: () => measure({ host, port }, ms),
    });
    const against = 'QEMU’s own forward of the same guest';
    return ratioRow({ work, against, atLeast: AT_LEAST, unit: 'B/s', comparison: compare(direct, front) });
  };
  const rows = [
    await row('bytes from a machine through its address', SENDER_PORT, fromGuest),
    await row('bytes to a machine through its address', RECEIVER_PORT, toGuest),
  ];
  await ended(cloud, [vmId]);
  return rows;
}

function runningMachines(options: RunOptions): Promise<Row[]> {
  return withCloud(options, async (cloud) => {
    await liftQuotas(cloud, 'vms', 'vcpus', 'disk_gb');
    return [...(await throughFront(options, cloud)), await idleCost(options, cloud), await listing(cloud)];
  });
}

export const RUNNING_MACHINES: readonly Measurement[] = [{ name: 'running-machines', run: runningMachines }];
