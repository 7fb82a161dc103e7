/** `db connect` with the real mongosh, on the built-in MongoDB. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CliUser, commandLines, TerminalSession } from '../acceptance/cli-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { cannotOpenTerminal } from '../harness/terminal.ts';
import { NpmFolder } from './npm-folder.ts';

const PROMPT = /d_\w+> $/;
const temporary = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
let folder: NpmFolder;
let env: Record<string, string>;
before(async () => {
  folder = await NpmFolder.with(['mongosh@2.12.0'], {});
  env = { PATH: `${folder.path}/node_modules/.bin:${process.env.PATH}`, TMPDIR: temporary, TERM: 'dumb' };
});
after(() => {
  folder?.remove();
  rmSync(temporary, { recursive: true });
});

for (const [what, settings] of Object.entries({
  'on this host': {},
  'open to other hosts, with TLS': { CLOUDLET_DATABASE_HOST: 'db.example.com' },
}))
  describe(`mongosh, and a server ${what}`, () => {
    let cloud: CloudProcess;
    let user: CliUser & { readonly key: string };
    let password = '';
    before(async () => {
      cloud = await CloudProcess.start({ env: { CLOUDLET_MONGODB_SERVER: 'built-in', ...settings } });
      user = await CliUser.signedIn(cloud.api);
      const api = (await CheckedClient.open(cloud.api)).as(user.key);
      const made = await api.expect(201, '/api/databases', { json: { name: 'shop', engine: 'mongodb' } });
      password = made.connection.password;
    });
    after(async () => {
      user?.remove();
      await cloud?.stop();
    });

    test('a script runs, and standard input too', async () => {
      const put = 'db.t.insertMany([{ a: 1 }, { a: 41 }]).acknowledged';
      assert.equal(await user.ok(['db', 'connect', 'shop', '--', '--eval', put], { env }), 'true\n');
      const sum = 'print(db.t.find().toArray().reduce((all, { a }) => all + a, 0))\n';
      assert.match(await user.ok(['db', 'connect', 'shop'], { env, input: sum }), /\b42\b/);
      await user.fails(1, ['db', 'connect', 'shop', '--', '--eval', 'throw new Error("none")'], { env });
    });

    test('at a terminal, with the password in no argument and no file', {
      skip: cannotOpenTerminal,
    }, async () => {
      const session = new TerminalSession(user, 'db connect shop', env);
      await session.type('db.t.countDocuments() + 40\n', PROMPT);
      await session.sees(/\b42\b/);
      const lines = [...commandLines().values()];
      assert.ok(lines.some((line) => line.includes('mongosh')));
      assert.ok(!lines.some((line) => line.includes(password)), 'the password is among the arguments');
      const files = [temporary, user.home].flatMap((place) =>
        readdirSync(place, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
          .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8')),
      );
      assert.ok(
        files.every((text) => !text.includes(password)),
        'the password is in a file',
      );
      await session.type('\u0003', PROMPT);
      await session.type('quit\n', PROMPT);
      assert.equal(await session.end(), 0);
    });
  });
