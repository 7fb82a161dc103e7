/** The doctor and the cloud show the same versions of the programs they use. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess, OWN_GROUND } from '../harness/cloud-process.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));
/** Subjects of the doctor by engine. */
const SUBJECTS: Readonly<Record<string, string>> = {
  sqlite: 'SQLite databases',
  postgresql: 'PostgreSQL',
  mysql: 'MySQL/MariaDB',
  mongodb: 'MongoDB',
};

const cloud = await CloudProcess.start();
after(() => cloud.stop());

test('of the engines of databases, and of the hypervisor', async () => {
  const env = {
    PATH: process.env.PATH,
    CLOUDLET_DATA_DIR: cloud.dataDir,
    CLOUDLET_VM_ACCEL: 'tcg',
    ...OWN_GROUND,
  };
  const lines = execFileSync(LAUNCHER, ['doctor'], { env, encoding: 'utf8' }).split('\n');
  const about = (subject: string) => lines.find((line) => line.slice(6).startsWith(`${subject} `)) ?? '';
  const api = (await CheckedClient.open(cloud.api)).as(ADMIN_KEY);
  for (const { engine, version, source } of await api.expect(200, '/api/database-engines')) {
    // A missing program has no version in either.
    if (version === null || source === 'external') continue;
    const line = about(SUBJECTS[engine] ?? engine);
    assert.ok(line.includes(` ${version}`), `${engine} ${version}: ${line}`);
  }
  const { components } = await api.expect(200, '/api/system/status');
  assert.ok(about('QEMU').includes(` ${components.compute.version}`), lines.join('\n'));
});
