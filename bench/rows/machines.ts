/** Machines: the time of a start compared with the same QEMU line by hand, and of their creation. */
import { once } from 'node:events';
import { banner, forwardOf, type LaunchLine, launchByHand, launchLineOf } from '../hand-launch.ts';
import { compare, interleave } from '../ratios.ts';
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
const PARALLEL = 100;
const MANY = 100;
const MOST_CREATE_MS = 50;
const MOST_BANNER_MS = 10_000;

const post = (cloud: Cloud, path: string) => bodyOf(cloud.client, path, { method: 'POST' });
const create = (cloud: Cloud) => bodyOf(cloud.client, '/api/vms', { json: VM });

async function elapsed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** One start by hand: until its processor runs, or until its SSH responds. */
async function byHand(line: LaunchLine, until: 'running' | 'banner'): Promise<number> {
  let stop = async () => {};
  const ms = await elapsed(async () => {
    const child = await launchByHand(line);
    stop = async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    };
    if (until === 'banner') await banner(forwardOf(line, 22));
  });
  await stop();
  return ms;
}

async function starts(options: RunOptions, cloud: Cloud): Promise<Row[]> {
  const { vm_id: vmId, ip_address: host } = await create(cloud);
  const path = `/api/vms/${vmId}`;
  await post(cloud, `${path}/start`);
  const line = launchLineOf(vmId);
  await banner({ host, port: 2222 });
  await post(cloud, `${path}/stop?grace=30`);
  const ours = async (until: 'running' | 'banner') => {
    const ms = await elapsed(async () => {
      await post(cloud, `${path}/start`);
      if (until === 'banner') await banner({ host, port: 2222 });
    });
    await post(cloud, `${path}/stop?force=true`);
    return ms;
  };
  const running = await interleave(options.quick ? 3 : 9, {
    hand: () => byHand(line, 'running'),
    ours: () => ours('running'),
  });
  const ssh = await interleave(options.quick ? 2 : 5, {
    hand: () => byHand(line, 'banner'),
    ours: () => ours('banner'),
  });
  const against = 'the same QEMU line by hand';
  const bannerRow = ratioRow({
    work: 'start a machine until its SSH speaks',
    against,
    atMost: 1.1,
    unit: 'ms',
    comparison: compare(ssh.hand, ssh.ours),
  });
  const isSoon = Math.max(...ssh.ours) < MOST_BANNER_MS;
  return [
    ratioRow({
      work: 'start a machine until its processor runs',
      against,
      atMost: 1.25,
      unit: 'ms',
      comparison: compare(running.hand, running.ours),
    }),
    { ...bannerRow, target: `${bannerRow.target}, < 10 s`, isMet: bannerRow.isMet === true && isSoon },
  ];
}

async function creations(cloud: Cloud): Promise<Row[]> {
  const times: number[] = [];
  for (let i = 0; i < MANY; i++) times.push(await elapsed(() => create(cloud)));
  const sorted = times.sort((a, b) => a - b);
  const p99 = sorted[Math.ceil(MANY * 0.99) - 1] ?? Number.NaN;
  const vms = await Promise.all(Array.from({ length: PARALLEL }, () => create(cloud)));
  const addresses = new Set(vms.map(({ ip_address }) => ip_address)).size;
  return [
    {
      work: `create a machine, ${MANY} one after the other: p99`,
      target: `≤ ${MOST_CREATE_MS} ms`,
      reached: `**${p99.toFixed(1)} ms**`,
      isMet: p99 <= MOST_CREATE_MS,
      detail: `median ${sorted[MANY >> 1]?.toFixed(1)} ms`,
    },
    {
      work: `create ${PARALLEL} machines at once: different addresses`,
      target: `${PARALLEL}`,
      reached: `**${addresses}**`,
      isMet: addresses === PARALLEL,
      detail: '',
    },
  ];
}

function machines(options: RunOptions): Promise<Row[]> {
  return withCloud(options, async (cloud) => {
    await liftQuotas(cloud, 'vms', 'vcpus', 'disk_gb');
    return [...(await starts(options, cloud)), ...(await creations(cloud))];
  });
}

export const MACHINES: readonly Measurement[] = [{ name: 'machines', run: machines }];
