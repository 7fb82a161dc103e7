/** `db connect` with the real psql and mariadb in both uses: on a terminal, and from scripts. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { cannotOpenTerminal } from '../harness/terminal.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser, commandLines, TerminalSession } from './cli-kit.ts';

const ROOT = join(import.meta.dirname, '../..');
const builtIn = (path: string) => globSync(join(ROOT, 'build/programs', path))[0];

interface Engine {
  readonly engine: string;
  readonly program: string;
  readonly skip: string | false;
  /** Observed once it waits for a statement. */
  readonly prompt: RegExp;
  /** Takes a minute unless it is cancelled. */
  readonly long: string;
  readonly cancelled: RegExp;
  /** Returns whether the connection is encrypted. */
  readonly isEncrypted: string;
  readonly once: (statement: string) => readonly string[];
}

const PSQL = builtIn('postgresql-*/usr/lib/postgresql/*/bin/psql');
const MARIADB = builtIn('mariadb-*/usr/bin/mariadb');
const ENGINES: readonly Engine[] = [
  {
    engine: 'postgresql',
    program: PSQL ?? 'psql',
    skip: PSQL === undefined && NO_POSTGRESQL,
    prompt: /d_\w+=> $/,
    long: 'SELECT pg_sleep(60);',
    cancelled: /canceling statement due to user request/,
    isEncrypted: 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
    once: (statement) => ['-Atc', statement],
  },
  {
    engine: 'mysql',
    program: MARIADB ?? 'mariadb',
    skip: MARIADB === undefined && NO_MARIADB,
    prompt: /\[d_\w+\]> $/,
    long: 'SELECT SLEEP(60);',
    cancelled: /Query execution was interrupted|SLEEP\(60\) \|[\s\S]*\| +1 \|/,
    isEncrypted:
      "SELECT IF(VARIABLE_VALUE = '', 'f', 't') FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'",
    once: (statement) => ['-Ne', statement],
  },
];

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
const api = (await CheckedClient.open(cloud.api)).as(user.key);
/** Of all programs that the client starts here. */
const temporary = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
after(async () => {
  user.remove();
  rmSync(temporary, { recursive: true });
  await cloud.stop();
});

const environment = ({ program }: Engine) => ({
  PATH: `${dirname(program)}:${process.env.PATH}`,
  TMPDIR: temporary,
  TERM: 'dumb',
  PAGER: 'cat',
});

/** Ids of that program as started by the client. */
const idsOf = ({ program }: Engine) =>
  [...commandLines(`TMPDIR=${temporary}`)]
    .filter(([, line]) => line.startsWith(basename(program)))
    .map(([id]) => id);

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));

for (const one of ENGINES) {
  const { engine, prompt, skip } = one;
  describe(`db connect to ${engine}`, { skip }, () => {
    let password = '';
    test('a script runs statements, and gets the exit code of the program', async () => {
      const { connection } = await api.expect(201, '/api/databases', { json: { name: engine, engine } });
      password = connection.password;
      const env = environment(one);
      const said = await user.ok(['db', 'connect', engine, '--', ...one.once('SELECT 6 * 7')], { env });
      assert.equal(said, '42\n');
      const { code, stderr } = await user.run(
        ['db', 'connect', engine, '--', ...one.once('SELECT nothing')],
        { env },
      );
      assert.equal(code, 1);
      assert.match(stderr, /nothing/);
      assert.match(await user.ok(['db', 'connect', engine], { env, input: 'SELECT 6 * 7;\n' }), /\b42\b/);
    });

    test('settings of the user for another server lead nowhere else', async () => {
      writeFileSync(
        join(user.home, '.my.cnf'),
        '[client]\nhost=db.invalid\nport=9\nuser=other\npassword=wrong\nsocket=/none\nssl\n[mariadb]\nprompt=mine> \n',
        { mode: 0o600 },
      );
      writeFileSync(join(user.home, '.pg_service.conf'), '[elsewhere]\nhost=db.invalid\ndbname=other\n');
      const env = {
        ...environment(one),
        PGSERVICE: 'elsewhere',
        PGTARGETSESSIONATTRS: 'standby',
        MYSQL_HOST: 'db.invalid',
        MYSQL_PWD: 'wrong',
      };
      const said = await user.ok(['db', 'connect', engine, '--', ...one.once('SELECT 6 * 7')], { env });
      rmSync(join(user.home, '.my.cnf'));
      assert.equal(said, '42\n');
    });

    test('at a terminal Ctrl-C cancels the statement alone, and quit ends all', {
      skip: cannotOpenTerminal,
    }, async () => {
      const session = new TerminalSession(user, `db connect ${engine}`, environment(one));
      await session.type(`${one.long}\n`, prompt);
      await eventually('the program', () => idsOf(one).length > 0);
      const lines = [...commandLines().values()];
      assert.ok(!lines.some((line) => line.includes(password)), 'the password is among the arguments');
      assert.ok(
        filesIn(temporary).every((text) => !text.includes(password)),
        'the password is in a file',
      );
      await session.sees(/SLEEP\(60\)/i);
      await new Promise((resolve) => setTimeout(resolve, 500));
      await session.type('\u0003', /(?:)/);
      await session.sees(one.cancelled);
      await session.type('SELECT 6 * 7;\n', prompt);
      await session.sees(/\b42\b/);
      await session.type('quit\n', prompt);
      assert.equal(await session.end(), 0);
      assert.deepEqual(idsOf(one), []);
      assert.deepEqual(readdirSync(temporary), []);
    });

    test('what ends the client ends the program, and no password stays', async () => {
      for (const signal of ['SIGTERM', 'SIGHUP', 'SIGKILL'] as const) {
        const child = user.start(['db', 'connect', engine, '--', ...one.once(one.long)], {
          env: environment(one),
        });
        const ids = await eventually(`the program before ${signal}`, () => {
          const found = idsOf(one);
          return found.length > 0 ? found : null;
        });
        child.kill(signal);
        await once(child, 'close');
        assert.ok(
          filesIn(temporary).every((text) => !text.includes(password)),
          signal,
        );
        if (signal === 'SIGKILL') for (const id of ids) process.kill(id);
        else assert.equal(child.exitCode, signal === 'SIGTERM' ? 143 : 129);
        await eventually('its end', () => idsOf(one).length === 0);
        if (signal !== 'SIGKILL') assert.deepEqual(readdirSync(temporary), []);
      }
      rmSync(temporary, { recursive: true });
      mkdirSync(temporary);
    });
  });
}

describe('where servers are open to other hosts', () => {
  const skip = ENGINES.map((one) => one.skip).find((why) => why !== false) ?? false;
  test('the connection inside the tunnel is encrypted, and the server verified', { skip }, async (t) => {
    const open = await CloudProcess.start({ env: { CLOUDLET_DATABASE_HOST: 'db.example.com' } });
    t.after(() => open.stop());
    const other = await CliUser.signedIn(open.api);
    t.after(() => other.remove());
    for (const one of ENGINES) {
      const env = environment(one);
      await other.ok(['db', 'create', one.engine, '--engine', one.engine]);
      const said = await other.ok(['db', 'connect', one.engine, '--', ...one.once(one.isEncrypted)], { env });
      assert.equal(said, 't\n');
    }
  });
});
