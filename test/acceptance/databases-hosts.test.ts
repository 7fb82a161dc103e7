/** Databases on hosts that restrict root: containers, and user namespaces. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess, NO_OTHER_READERS } from '../harness/cloud-process.ts';

/** The default capabilities of root in Docker. */
const DOCKER =
  'chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot';
const WRAPPERS = {
  'as root of a container without CAP_SYS_ADMIN': [
    'setpriv',
    `--bounding-set=-all,+${DOCKER.replaceAll(',', ',+')},+mknod,+audit_write,+setfcap`,
    '--inh-caps=-all',
  ],
  'as root of a namespace of users that has one user': ['unshare', '--user', '--map-root-user'],
  'as root whose new files nobody else may read': ['sh', '-c', 'umask 077; exec "$@"', 'sh'],
};
const ENGINES = {
  sqlite: { program: null, query: { statement: 'SELECT 1' } },
  postgresql: { program: 'postgresql', query: { statement: 'SELECT 1' } },
  mysql: { program: 'mariadb', query: { statement: 'SELECT 1' } },
  mongodb: { program: null, query: { command: { count: 'nothing' } } },
};

function cannot(wrapper: readonly string[]): string | false {
  if (process.getuid?.() !== 0) return 'needs root';
  const [program = '', ...words] = [...wrapper, 'true'];
  if (spawnSync(program, words).status !== 0) return `this host does not let us run ${program}`;
  return NO_OTHER_READERS;
}

for (const [name, wrapper] of Object.entries(WRAPPERS)) {
  describe(`databases ${name}`, { skip: cannot(wrapper) }, () => {
    test('each engine makes one that answers, and is back after a new start', async (t) => {
      const first = await CloudProcess.start({ wrapper });
      t.after(() => first.stop());
      const user = await new Client(first.api).newUser();
      const asked: [id: string, query: object][] = [];
      for (const [engine, { program, query }] of Object.entries(ENGINES)) {
        if (program !== null && globSync(`build/programs/${program}-*/usr`).length === 0) continue;
        const made = await user.call('/api/databases', { json: { name: `on-${engine}`, engine } });
        assert.equal(made.status, 201, JSON.stringify(made.body));
        asked.push([made.body.database_id, query]);
      }
      const askAll = async (client: Client) => {
        for (const [id, json] of asked) {
          const answer = await client.call(`/api/databases/${id}/query`, { json });
          assert.equal(answer.status, 200, JSON.stringify(answer.body));
          assert.equal(answer.body.row_count, 1);
          const dump = await client.fetch(`/api/databases/${id}/dump`);
          assert.equal(dump.status, 200, await dump.text());
        }
      };
      await askAll(user);
      await first.end();
      const later = await CloudProcess.start({ dataDir: first.dataDir, wrapper });
      t.after(() => later.stop());
      await askAll(new Client(later.api, user.key));
    });
  });
}
