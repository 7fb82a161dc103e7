/** Calls of storage, databases, machines, recovery and maintenance that accept an Idempotency-Key. */
import { eventually } from '../harness/waiting.ts';
import { helloDisk, IMAGES } from './images-kit.ts';
import { fileOf, type KeptCases, type OneKeyKit } from './one-key-kit.ts';

const SSH_KEY = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;
const POINTS = '/api/disaster-recovery/points';
const ALL = '/api/buckets/all';

const STORAGE: KeptCases = {
  createBucket: {
    ask: (kit, n) => ({
      path: '/api/buckets',
      json: { name: n },
      effects: () => kit.countOf('/api/buckets', ({ name }) => name === n),
    }),
  },
  changeBucket: {
    ask: async (kit, n) => {
      await kit.made('/api/buckets', { name: n });
      return { path: `/api/buckets/${n}`, method: 'PATCH', json: { versioning: true } };
    },
  },
  deleteBucket: {
    ask: async (kit, n) => {
      await kit.made('/api/buckets', { name: n });
      return { path: `/api/buckets/${n}`, method: 'DELETE' };
    },
  },
  restoreBucket: {
    once: true,
    ask: async (kit) => ({
      path: '/api/buckets/restored/restore',
      json: { point_id: await kit.point(), existing: 'replace' },
    }),
  },
  changeBucketSettings: {
    ask: (_, n) => ({ path: `${ALL}/settings`, method: 'PATCH', json: { tags: { n } } }),
  },
  beginUpload: {
    ask: (kit, n) => ({
      path: `${ALL}/uploads`,
      json: { name: n },
      effects: () => kit.countOf(`${ALL}/uploads`, ({ name }) => name === n),
    }),
  },
  abortUpload: {
    ask: async (kit, n) => {
      const { upload_id: id } = await kit.made(`${ALL}/uploads`, { name: n });
      return { path: `${ALL}/uploads/${id}`, method: 'DELETE' };
    },
  },
  uploadObject: {
    ask: (kit, n) => ({
      path: `${ALL}/upload`,
      form: () => fileOf('the same', n),
      effects: () => kit.versionsOf(n),
    }),
  },
  changeObject: {
    ask: async (kit, n) => ({
      path: `/api/storage/${await kit.stored(n)}`,
      method: 'PATCH',
      json: { metadata: { n }, mime_type: 'text/plain' },
    }),
  },
  copyObject: {
    ask: async (kit, n) => ({
      path: `/api/storage/${await kit.stored(`from-${n}`)}/copy`,
      json: { name: n },
      effects: () => kit.versionsOf(n),
    }),
  },
  moveObject: {
    ask: async (kit, n) => ({
      path: `/api/storage/${await kit.stored(`from-${n}`)}/move`,
      json: { name: n },
      effects: () => kit.versionsOf(n),
    }),
  },
  restoreObject: {
    ask: async (kit, n) => {
      const { body } = await kit.nodes[0].upload('all', n, 'first');
      await kit.stored(n);
      return { path: `/api/storage/${body.object_id}/restore`, json: { version_id: body.version_id } };
    },
  },
  deleteObject: {
    ask: async (kit, n) => ({ path: `/api/storage/${await kit.stored(n)}`, method: 'DELETE' }),
  },
  createShare: {
    ask: async (kit, n) => {
      await kit.stored(n);
      return {
        path: '/api/shares',
        json: { bucket: 'all', name: n },
        effects: () => kit.countOf('/api/shares', ({ name }) => name === n),
      };
    },
  },
  endShare: {
    ask: async (kit, n) => {
      await kit.stored(n);
      const { share_id: id } = await kit.made('/api/shares', { bucket: 'all', name: n });
      return { path: `/api/shares/${id}`, method: 'DELETE' };
    },
  },
  createEncryptionKey: { ask: (_, n) => ({ path: '/api/encryption-keys', json: { id: n } }) },
  changeEncryptionKey: {
    ask: async (kit, n) => {
      await kit.made('/api/encryption-keys', { id: n });
      return { path: `/api/encryption-keys/${n}`, method: 'PATCH', json: { enabled: false } };
    },
  },
  deleteEncryptionKey: {
    ask: async (kit, n) => {
      await kit.made('/api/encryption-keys', { id: n });
      return { path: `/api/encryption-keys/${n}`, method: 'DELETE' };
    },
  },
};

const DATABASES: KeptCases = {
  createDatabase: {
    ask: (kit, n) => ({
      path: '/api/databases',
      json: { name: n },
      effects: () => kit.countOf('/api/databases', ({ name }) => name === n),
    }),
  },
  changeDatabase: {
    ask: async (kit, n) => ({
      path: await kit.newDatabase(n),
      method: 'PATCH',
      json: { name: `${n}-2`, delete_protection: true },
    }),
  },
  rotateDatabaseCredentials: {
    ask: async (kit, n) => ({ path: `${await kit.newDatabase(n)}/credentials/rotate` }),
  },
  restartDatabase: { ask: (kit) => ({ path: `${kit.database}/restart` }) },
  deleteDatabase: { ask: async (kit, n) => ({ path: await kit.newDatabase(n), method: 'DELETE' }) },
  undeleteDatabase: {
    ask: async (kit, n) => {
      const path = await kit.newDatabase(n);
      await kit.remove(path);
      return { path: `${path}/undelete`, json: {} };
    },
  },
  queryDatabase: {
    ask: (kit, n) => ({
      path: `${kit.database}/query`,
      json: { statement: `INSERT INTO notes VALUES ('${n}')`, read_only: false },
      effects: () => kit.countRows(n),
    }),
  },
  explainDatabaseQuery: {
    reads: true,
    ask: (kit) => ({ path: `${kit.database}/query/explain`, json: { statement: 'SELECT 1' } }),
  },
  cancelDatabaseQuery: {
    ask: async (kit, n) => {
      const statement =
        'WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT max(i) FROM c';
      const json = { statement, query_id: n };
      void kit.nodes[0].call(`${kit.database}/query`, { json }).catch(() => {});
      const running = () => kit.countOf(`${kit.database}/queries`, ({ query_id: id }) => id === n);
      await eventually('the statement runs', async () => (await running()) > 0);
      return { path: `${kit.database}/queries/${n}/cancel` };
    },
  },
  saveQuery: {
    ask: (kit, n) => ({
      path: `${kit.database}/saved-queries`,
      json: { name: n, text: 'SELECT 1' },
      effects: () => kit.countOf(`${kit.database}/saved-queries`, ({ name }) => name === n),
    }),
  },
  deleteSavedQuery: {
    ask: async (kit, n) => {
      const path = `${kit.database}/saved-queries`;
      const { saved_query_id: id } = await kit.made(path, { name: n, text: 'SELECT 1' });
      return { path: `${path}/${id}`, method: 'DELETE' };
    },
  },
  readDatabaseRows: {
    reads: true,
    ask: (kit) => ({ path: `${kit.database}/rows/read`, json: { table: 'notes' } }),
  },
  changeDatabaseRows: {
    ask: (kit, n) => ({
      path: `${kit.database}/rows/change`,
      json: { table: 'notes', changes: [{ action: 'insert', values: { text: n } }] },
      effects: () => kit.countRows(n),
    }),
  },
  importDatabaseRows: {
    ask: (kit, n) => ({
      path: `${kit.database}/rows/import?table=notes`,
      form: () => fileOf(`text\n${n}\n`),
      effects: () => kit.countRows(n),
    }),
  },
  loadDatabase: {
    ask: (kit, n) => ({
      path: `${kit.database}/load`,
      form: () => fileOf(`INSERT INTO notes VALUES ('${n}');`, 'dump.sql'),
      effects: () => kit.countRows(n),
    }),
  },
};

/** The path of a snapshot of a new machine. */
async function newSnapshot(kit: OneKeyKit, n: string): Promise<string> {
  const machine = await kit.newMachine(n);
  const { snapshot_id: id } = await kit.made(`${machine}/snapshots`, { name: 's' });
  return `${machine}/snapshots/${id}`;
}

async function stoppedMachine(kit: OneKeyKit, n: string): Promise<string> {
  const path = await kit.newMachine(n);
  await kit.made(`${path}/stop`);
  return path;
}

async function startedMachine(kit: OneKeyKit, n: string): Promise<string> {
  const path = await kit.newMachine(n);
  await kit.made(`${path}/start`);
  return path;
}

async function newImage(kit: OneKeyKit, name: string): Promise<string> {
  const body = fileOf(helloDisk() as Uint8Array<ArrayBuffer>, `${name}.img`);
  const { image_id: id } = (await kit.nodes[0].call(`${IMAGES}/upload`, { body })).body;
  const path = `${IMAGES}/${id}`;
  await eventually('the end of the import', async () => {
    const images = await kit.seen(IMAGES);
    return images.some(
      (image: Record<string, string>) => image.image_id === id && image.state !== 'importing',
    );
  });
  return path;
}

const MACHINES: KeptCases = {
  createVm: {
    ask: (kit, n) => ({
      path: '/api/vms',
      json: { name: n, instance_type: 't2.micro' },
      effects: () => kit.countOf('/api/vms', ({ name }) => name === n),
    }),
  },
  changeVm: {
    ask: async (kit, n) => ({ path: await kit.machine(), method: 'PATCH', json: { tags: n } }),
  },
  startVm: { once: true, ask: async (kit, n) => ({ path: `${await kit.newMachine(n)}/start` }) },
  stopVm: {
    once: true,
    ask: async (kit, n) => ({ path: `${await startedMachine(kit, n)}/stop?force=true` }),
  },
  deleteVm: { ask: async (kit, n) => ({ path: await stoppedMachine(kit, n), method: 'DELETE' }) },
  rebuildVm: { ask: async (kit, n) => ({ path: `${await kit.newMachine(n)}/rebuild`, json: {} }) },
  lendSshKey: {
    ask: async (kit) => ({ path: `${await kit.machine()}/ssh-keys`, json: { public_key: SSH_KEY } }),
  },
  createVmSnapshot: {
    ask: async (kit, n) => {
      const path = `${await kit.newMachine(n)}/snapshots`;
      return { path, json: { name: 'one' }, effects: () => kit.countOf(path, () => true) };
    },
  },
  restoreVmSnapshot: { ask: async (kit, n) => ({ path: `${await newSnapshot(kit, n)}/restore` }) },
  deleteVmSnapshot: { ask: async (kit, n) => ({ path: await newSnapshot(kit, n), method: 'DELETE' }) },
  addSshKey: {
    ask: (kit, n) => ({
      path: '/api/account/ssh-keys',
      json: { name: n, public_key: SSH_KEY },
      effects: () => kit.countOf('/api/account/ssh-keys', ({ name }) => name === n),
    }),
  },
  deleteSshKey: {
    ask: async (kit, n) => {
      await kit.made('/api/account/ssh-keys', { name: n, public_key: SSH_KEY });
      return { path: `/api/account/ssh-keys/${n}`, method: 'DELETE' };
    },
  },
  publishVmPort: {
    ask: async (kit, n) => {
      const path = `${await kit.newMachine(n)}/ports`;
      return { path, json: { port: 80 }, effects: () => kit.countOf(path, () => true) };
    },
  },
  unpublishVmPort: {
    ask: async (kit, n) => {
      const path = `${await kit.newMachine(n)}/ports`;
      const { port_id: id } = await kit.made(path, { port: 80 });
      return { path: `${path}/${id}`, method: 'DELETE' };
    },
  },
  createConsoleTicket: {
    once: true,
    ask: async (kit, n) => ({ path: `${await startedMachine(kit, n)}/console-tickets` }),
  },
  adminStopVm: {
    ask: async (kit, n) => ({ path: `${(await kit.newMachine(n)).replace('/api', '/api/admin')}/stop` }),
  },
  adminDeleteVm: {
    ask: async (kit, n) => ({
      path: (await stoppedMachine(kit, n)).replace('/api', '/api/admin'),
      method: 'DELETE',
    }),
  },
  adminAddImage: {
    ask: (kit, n) => ({
      path: IMAGES,
      json: { name: n, url: 'http://127.0.0.1:9/disk.img' },
      effects: () => kit.countOf(IMAGES, ({ name }) => name === n),
    }),
  },
  adminUploadImage: {
    ask: (kit, n) => ({
      path: `${IMAGES}/upload`,
      form: () => {
        const form = fileOf(helloDisk() as Uint8Array<ArrayBuffer>, 'disk.img');
        form.set('name', n);
        return form;
      },
      effects: () => kit.countOf(IMAGES, ({ name }) => name === n),
    }),
  },
  adminDeleteImage: { ask: async (kit, n) => ({ path: await newImage(kit, n), method: 'DELETE' }) },
  // The mirror in the settings has none, so the import fails after the answer.
  adminFetchImage: { once: true, ask: () => ({ path: `${IMAGES}/known/debian-13` }) },
};

const UPKEEP: KeptCases = {
  createRecoveryPoint: { once: true, ask: () => ({ path: POINTS }) },
  deleteRecoveryPoint: {
    once: true,
    ask: async (kit) => ({ path: `${POINTS}/${await kit.point()}`, method: 'DELETE' }),
  },
  undeleteRecoveryPoint: {
    once: true,
    ask: async (kit) => {
      const path = `${POINTS}/${await kit.point()}`;
      // It may be deleted already.
      await kit.nodes[0].call(path, { method: 'DELETE' });
      return { path: `${path}/undelete` };
    },
  },
  applyRecoveryRetention: { once: true, ask: () => ({ path: '/api/disaster-recovery/retention' }) },
  updateRecoverySchedule: {
    ask: (_, n) => ({
      path: '/api/disaster-recovery/schedule',
      method: 'PATCH',
      json: { keep: { last: 30 + n.length } },
    }),
  },
  startScrub: { once: true, ask: () => ({ path: '/api/admin/scrub' }) },
};

export const RESOURCE_CASES: KeptCases = { ...STORAGE, ...DATABASES, ...MACHINES, ...UPKEEP };
