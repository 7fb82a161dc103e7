/** The place of a run: a folder on a real disk, and clouds in separate processes with default settings. */
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '../test/harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../test/harness/cloud-process.ts';

const TMPFS_MAGIC = 0x01021994;
/** Only settings that a load of thousands of requests per second with one key needs. */
const RAISED = {
  CLOUDLET_RATE_REQUESTS: '1000000000',
  CLOUDLET_RATE_S3: '1000000000',
  CLOUDLET_LOG_LEVEL: 'info',
};

export interface RunOptions {
  readonly quick: boolean;
  /** Rounds of very slow rows; undefined: their own number. */
  readonly rounds: number | undefined;
  /** A new folder, removed at the end. */
  readonly folder: string;
}

/** The result of one row of the table. */
export interface Row {
  readonly work: string;
  readonly target: string;
  readonly reached: string;
  /** undefined: not measured; `detail` has the reason. */
  readonly isMet: boolean | undefined;
  readonly detail: string;
}

export interface Measurement {
  /** For --only. */
  readonly name: string;
  readonly run: (options: RunOptions) => Promise<Row[]>;
}

/** A folder on a disk, not in memory: nothing here may be faster than in production. */
export function makeFolder(): string {
  const candidates = [tmpdir(), '/var/tmp', process.cwd()];
  const parent = candidates.find((candidate) => statfsSync(candidate).type !== TMPFS_MAGIC);
  if (parent === undefined) throw new Error('no folder on a real disk: set TMPDIR to one');
  const folder = mkdtempSync(join(parent, 'cloudlet-bench-'));
  // A server started by hand runs as another user.
  chmodSync(folder, 0o711);
  return folder;
}

export interface Cloud {
  readonly process: CloudProcess;
  /** With the key of an ordinary account. */
  readonly client: Client;
  readonly key: string;
  readonly port: number;
}

const clouds = new Set<CloudProcess>();
process.once('exit', () => {
  for (const cloud of clouds) cloud.kill();
});

/** Starts a cloud and registers an account. */
async function openCloud(folder: string, env: Readonly<Record<string, string>>): Promise<Cloud> {
  const cloud = await CloudProcess.start({
    dataDir: join(folder, 'cloud'),
    env: { ...RAISED, ...env },
  });
  clouds.add(cloud);
  try {
    const { api_key: key } = await new Client(cloud.api).register();
    return { process: cloud, client: new Client(cloud.api, key), key, port: Number(new URL(cloud.api).port) };
  } catch (error) {
    cloud.kill();
    throw error;
  }
}

/** Opens a cloud for one measurement, then stops it and frees its disk. */
export async function withCloud<Result>(
  options: RunOptions,
  work: (cloud: Cloud) => Promise<Result>,
  env: Readonly<Record<string, string>> = {},
): Promise<Result> {
  const cloud = await openCloud(options.folder, env);
  try {
    return await work(cloud);
  } finally {
    await cloud.process.stop();
    clouds.delete(cloud.process);
    rmSync(cloud.process.dataDir, { recursive: true, force: true });
  }
}

/** Lets the account have as many of these as a row creates: its plan allows fewer. */
export async function liftQuotas({ client, process: { api } }: Cloud, ...quotas: string[]): Promise<void> {
  const account = await bodyOf(client, '/api/account');
  const json = { quotas: Object.fromEntries(quotas.map((quota) => [quota, null])) };
  const admin = new Client(api, ADMIN_KEY);
  await bodyOf(admin, `/api/admin/accounts/${account.id}`, { method: 'PATCH', json });
}

/** The body of the response. Throws if the call is refused. */
export async function bodyOf(client: Client, path: string, call: Parameters<Client['call']>[1] = {}) {
  const { status, body } = await client.call(path, call);
  if (status >= 300) throw new Error(`${path} was answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

export async function createBucket(client: Client, bucket: Readonly<Record<string, unknown>>): Promise<void> {
  await bodyOf(client, '/api/buckets', { json: bucket });
}

/** Uploads one object and returns its id. */
export async function uploadObject(client: Client, bucket: string, content: Uint8Array): Promise<string> {
  const { status, body } = await client.upload(bucket, 'object', content);
  if (status !== 200) throw new Error(`an upload was answered ${status}: ${JSON.stringify(body)}`);
  return body.object_id;
}
