/**
 * The disk loses all unsynced data, just after databases and machines were created: the small files with
 * their ports, keys, log-ins and disks are complete, and all of them can be used.
 */
import { globSync, readdirSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { createConnection } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { DATABASES } from '../acceptance/databases-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const DISK_BYTES = 2 * 2 ** 30;
const POST = { method: 'POST' };
const isThere = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;

/** With the users' driver: the port, the log-in and the data. */
const ENGINES = {
  mongodb: async (uri: string) => {
    const client = new MongoClient(uri, { serverSelectionTimeoutMS: 20_000 });
    return client
      .db()
      .collection('t')
      .insertOne({ a: 1 })
      .finally(() => client.close());
  },
  postgresql: async (uri: string) => {
    const client = new Postgresql(uri);
    await client.connect();
    return client.query('CREATE TABLE IF NOT EXISTS t (a int)').finally(() => client.end());
  },
  mysql: async (uri: string) => {
    const client = await createConnection(uri);
    return client.query('CREATE TABLE IF NOT EXISTS t (a int)').finally(() => client.end());
  },
} as const;

function whyNot(): string | false {
  if (!isThere('postgresql')) return NO_POSTGRESQL;
  return isThere('mariadb') ? noLoopDisk() : NO_MARIADB;
}

/** One may have ended by itself meanwhile. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Servers and machines end with the host; the file system cannot be unmounted while they run. */
async function killAllIn(directory: string): Promise<void> {
  const isInside = (pid: string) => {
    try {
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`);
      return [`/proc/${pid}/cwd`, ...open].some((link) => readlinkSync(link).startsWith(directory));
    } catch {
      return false;
    }
  };
  const inside = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isInside(name));
  await eventually('all have ended', async () => {
    for (const pid of inside()) killIfThere(Number(pid));
    await sleep(50);
    return inside().length === 0;
  });
}

for (const mode of [1, 2] as const)
  test(`what was made just before the power went can be used, journal ${mode === 1 ? 'flushed' : 'lost'}`, {
    skip: whyNot(),
  }, async (t) => {
    const disk = new LoopDisk(DISK_BYTES);
    const cloud = await CloudProcess.start({ dataDir: `${disk.mountPoint}/data` });
    t.after(async () => {
      await cloud.crash();
      await killAllIn(disk.mountPoint);
      disk.remove();
    });
    let user = await CheckedClient.open(cloud.api);
    user = user.as((await user.register()).api_key);
    const uris = new Map<string, string>();
    for (const engine of Object.keys(ENGINES)) {
      const made = await user.expect(201, DATABASES, { json: { name: engine, engine } });
      const rotated = await user.expect(200, `${DATABASES}/${made.database_id}/credentials/rotate`, POST);
      uris.set(engine, rotated.connection.uri);
    }
    const machine = await user.expect(201, '/api/vms', { json: { name: 'web', instance_type: 't2.micro' } });
    await user.expect(200, `/api/vms/${machine.vm_id}/start`, POST);
    await disk.cutPower(mode, () => {});
    await cloud.crash();
    await killAllIn(disk.mountPoint);
    disk.unmount();
    disk.mount();
    await cloud.start();
    user = (await CheckedClient.open(cloud.api)).as(user.key);
    for (const [engine, use] of Object.entries(ENGINES))
      await eventually(`${engine} can be used`, () =>
        use(uris.get(engine) ?? '').then(
          () => true,
          () => false,
        ),
      );
    await eventually('the machine runs', async () => {
      const { state } = await user.expect(200, `/api/vms/${machine.vm_id}`);
      if (['stopped', 'error'].includes(state))
        await user.expect(200, `/api/vms/${machine.vm_id}/start`, POST);
      return state === 'running';
    });
  });
