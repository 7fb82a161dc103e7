/** Failing servers of databases: permanent errors are reported, and affect no other account. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { DATABASES, rowsOf, run } from '../acceptance/databases-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const isThere = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;
const KINDS = [
  { engine: 'postgresql', skip: isThere('postgresql') ? false : NO_POSTGRESQL },
  { engine: 'mysql', skip: isThere('mariadb') ? false : NO_MARIADB },
] as const;

const MARK = 'what a tenant has stored here';

/** Changes the mark in the pages of a file. */
function damage(path: string): void {
  if (/wal|ib_log|ibdata|undo|aria_log/.test(path)) return;
  const bytes = readFileSync(path);
  const at = bytes.indexOf(MARK);
  if (at < 0) return;
  bytes[at + 3] = (bytes[at + 3] ?? 0) ^ 0x10;
  writeFileSync(path, bytes);
}

for (const { engine, skip } of KINDS)
  describe(`the server of ${engine}`, { skip }, () => {
    let cloud: CloudProcess;
    let user: CheckedClient;
    let path = '';
    let folder = '';
    const here = (name: string) => join(folder, name);

    before(async () => {
      cloud = await CloudProcess.start();
      const anyone = await CheckedClient.open(cloud.api);
      user = anyone.as((await anyone.register()).api_key);
      const made = await user.expect(201, DATABASES, { json: { name: 'shop', engine } });
      path = `${DATABASES}/${made.database_id}`;
      await eventually('it is made', async () => (await user.expect(200, path)).state === 'ready');
      await rowsOf(user, path, 'SELECT 1');
      folder = String(globSync(join(cloud.dataDir, 'databases', engine, 'accounts/*'))[0]);
    });
    after(() => cloud.stop());

    /** Started again, after `change` of what it had left. */
    async function again(change: () => void): Promise<void> {
      assert.equal(await cloud.end(), 0);
      change();
      await cloud.start();
      user = (await CheckedClient.open(cloud.api)).as(user.key);
    }

    async function isInError(code: string): Promise<void> {
      const { state, state_reason } = await user.expect(200, path);
      assert.deepEqual([state, state_reason?.code], ['error', code]);
      assert.doesNotMatch(state_reason.message, /\/home\/|\.ts\b|SELECT/);
    }

    /** Held by the process that waits for it. */
    const serverPid = () => Number(readFileSync(here('keeper/run'), 'latin1').split(' ')[1]);
    const alarmOf = async (code: string, viewer = user) => {
      const { alarms } = await viewer.expect(200, '/api/system/status');
      return alarms.find((alarm: { code: string }) => alarm.code === code);
    };

    test('that hangs is told, and when it answers again', async () => {
      const pid = serverPid();
      process.kill(pid, 'SIGSTOP');
      try {
        const { detail } = await eventually('the alarm', () => alarmOf(`${engine}_unavailable`));
        assert.match(detail, /has not answered for 5 seconds|does not answer/);
        assert.doesNotMatch(detail, /account \d/);
        const operator = await alarmOf(`${engine}_unavailable`, user.as(ADMIN_KEY));
        assert.match(operator.detail, /^account \d+: .*answer/);
        // The public status does not tell others what is wrong with it.
        const hidden = await alarmOf(`${engine}_unavailable`, user.as(undefined));
        assert.match(hidden.detail, /only administrators see/);
      } finally {
        process.kill(pid, 'SIGCONT');
      }
      await eventually('no alarm', async () => (await alarmOf(`${engine}_unavailable`)) === undefined);
      assert.deepEqual(await rowsOf(user, path, 'SELECT 7'), [[7]]);
    });

    test('whose port cannot be read any more gets another, and that is told', async () => {
      await again(() => truncateSync(here('port'), 0));
      const { detail } = await eventually('the alarm', () => alarmOf(`${engine}_port_changed`));
      const { connection } = await user.expect(200, `${path}/credentials`);
      assert.ok(detail.includes(`now listens on port ${connection.port}`), detail);
      assert.deepEqual(await rowsOf(user, path, 'SELECT 7'), [[7]]);
      await again(() => {});
      assert.equal((await user.expect(200, `${path}/credentials`)).connection.port, connection.port);
    });

    test('whose data are gone, or of an unknown version, makes none instead of them', async () => {
      const series = engine === 'mysql' ? here('keeper/series') : here('home/data/PG_VERSION');
      const known = readFileSync(series);
      await again(() => rmSync(series));
      await user.refused(503, 'engine_unavailable', [`${path}/query`, { json: { statement: 'SELECT 1' } }]);
      const { fix } = await eventually('the alarm', () => alarmOf(`${engine}_unavailable`));
      assert.match(fix, /accounts\/\d+\/(keeper|home)/);
      await isInError('engine_unavailable');
      assert.ok(existsSync(here('home/data')));
      await again(() => {});
      await isInError('engine_unavailable');
      await again(() => writeFileSync(series, known));
      await eventually('it is back', async () => (await alarmOf(`${engine}_unavailable`)) === undefined);
      assert.deepEqual(await rowsOf(user, path, 'SELECT 7'), [[7]]);
    });

    test('that does not start for damage is in error with a reason, and ready once it starts again', async () => {
      const file = here(engine === 'mysql' ? 'home/data/ibdata1' : 'home/data/global/pg_control');
      const whole = readFileSync(file);
      await again(() => writeFileSync(file, Buffer.alloc(whole.length, 7)));
      const call = [`${path}/query`, { json: { statement: 'SELECT 1' } }] as const;
      const refused = await user.refused(503, 'engine_unavailable', [...call]);
      assert.match(refused.detail, /does not start/);
      await isInError('engine_unavailable');
      // Fixed while Cloudlet runs: it retries automatically.
      writeFileSync(file, whole);
      await eventually('it is ready', async () => (await user.expect(200, path)).state === 'ready');
      assert.deepEqual(await rowsOf(user, path, 'SELECT 7'), [[7]]);
    });

    /** A cause that prevents the server from starting, and its fix. */
    const hurts: Readonly<Record<string, () => () => void>> = {
      'log is lost': () => {
        const logs = globSync(here(engine === 'mysql' ? 'home/data/ib_logfile*' : 'home/data/pg_wal/0*'));
        assert.ok(logs.length > 0);
        for (const log of logs) renameSync(log, `${log}.away`);
        return () => {
          for (const log of logs) renameSync(`${log}.away`, log);
        };
      },
      'log is damaged': () => {
        const logs = globSync(here(engine === 'mysql' ? 'home/data/ib_logfile*' : 'home/data/pg_wal/0*'));
        const whole = logs.map((log) => readFileSync(log));
        for (const log of logs) writeFileSync(log, Buffer.alloc(statSync(log).size, 7));
        return () => logs.forEach((log, at) => void writeFileSync(log, whole[at] ?? ''));
      },
      'directory cannot be read': () => {
        const data = here('home/data');
        const { uid, gid, mode } = statSync(data);
        chownSync(data, 0, 0);
        chmodSync(data, 0);
        return () => {
          chownSync(data, uid, gid);
          chmodSync(data, mode & 0o7777);
        };
      },
    };
    for (const [what, hurt] of Object.entries(hurts))
      test(`whose ${what} is in error with a reason, and ready once it is mended`, async () => {
        let mend = () => {};
        await again(() => {
          mend = hurt();
        });
        const call = [`${path}/query`, { json: { statement: 'SELECT 1' } }] as const;
        const refused = await user.refused(503, 'engine_unavailable', [...call]);
        assert.doesNotMatch(refused.detail, /\/home\/|try again in a few minutes/);
        await isInError('engine_unavailable');
        const { fix } = await eventually('the alarm', () =>
          alarmOf(`${engine}_unavailable`, user.as(ADMIN_KEY)),
        );
        assert.match(fix, /accounts\/\d+|restore|operator/i);
        mend();
        await eventually('it is ready', async () => (await user.expect(200, path)).state === 'ready');
        assert.deepEqual(await rowsOf(user, path, 'SELECT 7'), [[7]]);
      });

    test('damage that a statement meets is told to its account and to the operator', async () => {
      await run(user, path, 'CREATE TABLE marked (a varchar(100))');
      await run(user, path, `INSERT INTO marked VALUES ('${MARK}')`);
      await again(() => {
        for (const file of globSync(here('home/data/**'), { withFileTypes: true }))
          if (file.isFile()) damage(join(file.parentPath, file.name));
      });
      const refused = await user.refused(500, 'data_damaged', [
        `${path}/query`,
        { json: { statement: 'SELECT a FROM marked' } },
      ]);
      assert.match(refused.hint, /load/);
      await isInError('data_damaged');
      const { detail } = await eventually('the alarm', () =>
        alarmOf('damaged_databases', user.as(ADMIN_KEY)),
      );
      assert.match(detail, new RegExp(path.split('/').at(-1) ?? ''));
      // The rest of it can be read and written.
      await run(user, path, 'DROP TABLE marked');
    });

    // PostgreSQL has no folders of databases that a crash could leave.
    const ofMysql = engine === 'mysql' ? test : () => {};
    ofMysql('in which a left-over cannot be removed serves on', async () => {
      await again(() => {
        const folder = here('home/data/t_0123456789abcdef');
        mkdirSync(join(folder, 'not-a-table'), { recursive: true, mode: 0o777 });
        writeFileSync(join(folder, 'mk.ibd'), '');
      });
      assert.deepEqual(await rowsOf(user, path, 'SELECT 7'), [[7]]);
      const { detail } = await eventually('the alarm', () => alarmOf('mysql_leftovers'));
      assert.match(detail, /t_0123456789abcdef/);
      await user.expect(201, DATABASES, { json: { name: 'next', engine } });
    });
  });
