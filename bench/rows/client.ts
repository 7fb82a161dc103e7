/**
 * The client `cloudlet`: a large file up and down, against Debian's awscli; ssh through its tunnel, against
 * ssh to the machine's address.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { notInstalled } from '../../scripts/installed.ts';
import { CliUser } from '../../test/acceptance/cli-kit.ts';
import { newKeyPair } from '../../test/acceptance/s3-kit.ts';
import { cannotRunGuests } from '../../test/acceptance/vms-kit.ts';
import { compare, interleave } from '../ratios.ts';
import { ratioRow, skippedRow } from '../table.ts';
import {
  createBucket,
  liftQuotas,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';

const MIB = 2 ** 20;
const PROGRAM = join(import.meta.dirname, '../../build/cli/cloudlet.mjs');
/** Debian's awscli: a newer one may come first in the PATH. */
const AWSCLI = '/usr/bin/aws';
const NAME = 'client';
const run = promisify(execFile);

/** An incompressible file. */
function fileOf(folder: string, bytes: number): string {
  const path = join(folder, 'large');
  for (let written = 0; written < bytes; written += 64 * MIB) appendFileSync(path, randomBytes(64 * MIB));
  return path;
}

async function besideAwscli(options: RunOptions): Promise<Row[]> {
  const missing = notInstalled('aws');
  if (missing) return [skippedRow('files with the client', '≥ 0.9 × awscli', missing)];
  const { rounds, bytes } = options.quick
    ? { rounds: 3, bytes: 256 * MIB }
    : { rounds: 3, bytes: 5120 * MIB };
  return withCloud(options, async (cloud) => {
    await liftQuotas(cloud, 'storage_bytes');
    await createBucket(cloud.client, { name: NAME });
    const { access_key_id: accessKey, secret_access_key: secret } = await newKeyPair(cloud.client);
    const home = join(options.folder, 'home');
    mkdirSync(home, { recursive: true });
    const file = fileOf(home, bytes);
    const common = { PATH: process.env.PATH, HOME: home };
    const keys = { AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secret, AWS_REGION: 'us-east-1' };
    const own = {
      CLOUDLET_URL: cloud.process.api,
      CLOUDLET_API_KEY: cloud.key,
      CLOUDLET_S3_URL: cloud.process.data,
      CLOUDLET_ACCESS_KEY_ID: accessKey,
      CLOUDLET_SECRET_ACCESS_KEY: secret,
    };
    const timed = async (program: string, words: readonly string[], env: NodeJS.ProcessEnv) => {
      const begun = performance.now();
      await run(program, [...words], { env, cwd: home });
      return bytes / ((performance.now() - begun) / 1000);
    };
    const aws = (from: string, to: string) => {
      const words = ['s3', 'cp', '--quiet', '--endpoint-url', cloud.process.data, from, to];
      return timed(AWSCLI, words, { ...common, ...keys });
    };
    const ours = (from: string, to: string) =>
      timed(process.execPath, [PROGRAM, 'cp', '--quiet', from, to], { ...common, ...own });
    const [there, here] = [`s3://${NAME}/aws`, `s3://${NAME}/ours`];
    const up = await interleave(rounds, { aws: () => aws(file, there), ours: () => ours(file, here) });
    const copy = join(home, 'copy');
    const fresh = (download: () => Promise<number>) => {
      rmSync(copy, { force: true });
      return download();
    };
    const down = await interleave(rounds, {
      aws: () => fresh(() => aws(there, copy)),
      ours: () => fresh(() => ours(here, copy)),
    });
    rmSync(home, { recursive: true });
    const size = bytes >= 1024 * MIB ? `${bytes / 1024 / MIB} GiB` : `${bytes / MIB} MiB`;
    const row = { against: 'awscli', atLeast: 0.9, unit: 'B/s' };
    return [
      ratioRow({ ...row, work: `client uploads ${size}`, comparison: compare(up.aws, up.ours) }),
      ratioRow({ ...row, work: `client downloads ${size}`, comparison: compare(down.aws, down.ours) }),
    ];
  });
}

/** Through the tunnel, each byte passes the client, the cloud and QEMU; directly, only QEMU. */
async function besideSsh(options: RunOptions): Promise<Row[]> {
  const missing = cannotRunGuests() || notInstalled('ssh');
  if (missing) return [skippedRow('ssh through the tunnel', '≥ 0.7 × ssh', missing)];
  const { rounds, bytes } = options.quick ? { rounds: 3, bytes: 32 * MIB } : { rounds: 3, bytes: 256 * MIB };
  return withCloud(options, async (cloud) => {
    const user = new CliUser();
    let path = '';
    try {
      await user.ok(['login', cloud.process.api, '--key', '-'], { input: cloud.key });
      const { vm_id, ip_address } = JSON.parse(await user.ok(['vm', 'create', 'web-1', '--start', '--json']));
      path = `/api/vms/${vm_id}`;
      await user.ok(['vm', 'ssh', 'web-1', '--', 'true']);
      const config = join(user.home, 'ssh-config');
      writeFileSync(config, await user.ok(['vm', 'ssh-config', 'web-1']));
      const env = { PATH: process.env.PATH, HOME: user.home };
      const timed = async (words: readonly string[], script: string) => {
        const begun = performance.now();
        await run('sh', ['-c', script, 'sh', String(bytes), '-F', config, ...words, 'web-1'], { env });
        return bytes / ((performance.now() - begun) / 1000);
      };
      const direct = ['-o', 'ProxyCommand=none', '-o', `HostName=${ip_address}`];
      const [up, down] = ['head -c "$1" /dev/zero | { shift; ssh "$@" "cat >/dev/null"; }', DOWN];
      const there = await interleave(rounds, { ssh: () => timed(direct, up), tunnel: () => timed([], up) });
      const back = await interleave(rounds, {
        ssh: () => timed(direct, down),
        tunnel: () => timed([], down),
      });
      const size = `${bytes / MIB} MiB`;
      const row = { against: 'ssh to its address', atLeast: 0.7, unit: 'B/s' };
      return [
        ratioRow({ ...row, work: `${size} into a machine`, comparison: compare(there.ssh, there.tunnel) }),
        ratioRow({ ...row, work: `${size} out of a machine`, comparison: compare(back.ssh, back.tunnel) }),
      ];
    } finally {
      await cloud.client.call(`${path}/stop?force=true`, { method: 'POST' });
      await cloud.client.call(path, { method: 'DELETE' });
      user.remove();
    }
  });
}

const DOWN = 'bytes=$1; shift; ssh "$@" "head -c $bytes /dev/zero" >/dev/null';

export const CLIENT: readonly Measurement[] = [
  { name: NAME, run: besideAwscli },
  { name: 'client-tunnel', run: besideSsh },
];
