/** The operator's access: the set-up link of the first start, and bin/cloudlet on the host itself. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { type Ended, makeSetupLink, runCloudlet } from '../harness/command.ts';
import { freePort } from '../harness/free-port.ts';

const root = mkdtempSync(join(tmpdir(), 'cloudlet-commands-'));
after(() => rmSync(root, { recursive: true, force: true }));

const directory = (name: string) => join(root, name);

/** The operator's commands on one data directory. */
class Operator {
  readonly dataDir: string;

  constructor(name: string) {
    this.dataDir = directory(name);
  }

  /** Started once, and stopped. */
  async haveCloud(): Promise<void> {
    const env = { CLOUDLET_ADMIN_KEY: '' };
    await (await CloudProcess.start({ dataDir: this.dataDir, env })).stop();
  }

  run(...args: string[]): Promise<Ended> {
    const env = { CLOUDLET_DATA_DIR: this.dataDir, CLOUDLET_PORT: '0', CLOUDLET_DATA_PORT: '0' };
    return runCloudlet(args, { env });
  }

  async succeed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    assert.deepEqual([code, stderr], [0, ''], `${args.join(' ')}: ${stdout}`);
    return stdout.trim();
  }

  /** Ends with this code and one line on stderr with the reason. */
  async fail(code: number, ...args: string[]): Promise<string> {
    const ended = await this.run(...args);
    assert.equal(ended.code, code, `${args.join(' ')}: ${ended.stdout}${ended.stderr}`);
    assert.match(ended.stderr, /^cloudlet: [^\n]+\n(?: {2}See: [^\n]+\n)?$/);
    return ended.stderr;
  }
}

describe('the set-up link', () => {
  test('makes the first administrator, once, also where nobody can register', async () => {
    const env = { CLOUDLET_ADMIN_KEY: '', CLOUDLET_REGISTRATION: 'closed' };
    const cloud = await CloudProcess.start({ env });
    try {
      const link = await makeSetupLink(cloud.dataDir);
      const { pathname, searchParams } = new URL(link);
      assert.equal(pathname, '/setup');
      const token = searchParams.get('token') ?? '';
      const client = await CheckedClient.open(cloud.api);
      const page = await (await fetch(link)).text();
      assert.match(page, /<form/);
      assert.doesNotMatch(page, /(?:src|href|action)="(?:https?:)?\/\//, 'the page asks nobody else');

      const fields = { username: 'chief', email: 'chief@example.org', password: 'correct horse battery' };
      await client.refused(403, 'registration_closed', ['/api/register', { json: fields }]);
      const setUp = (given: object): [string, { json: object }] => ['/api/setup', { json: given }];
      for (const bad of ['', 'x', token.slice(1), `${token}x`])
        await client.refused(403, 'invalid_link', setUp({ ...fields, token: bad }));
      await client.refused(400, 'invalid_request', setUp(fields));
      await client.refused(400, 'invalid_request', setUp({ ...fields, token, password: 'short' }));
      const made = await client.expect(201, ...setUp({ ...fields, token }));
      assert.equal(made.is_admin, true);
      await client.as(made.api_key).expect(200, '/api/admin/accounts');
      const other = { username: 'second', email: 'second@example.org', password: fields.password, token };
      await client.refused(403, 'invalid_link', setUp(other));
      await cloud.crash();
      await cloud.start();
      await assert.rejects(makeSetupLink(cloud.dataDir), /only creates the first one/);
      assert.doesNotMatch(cloud.output, /no administrator/);
    } finally {
      await cloud.stop();
    }
  });

  test('ends with the next one, and of two who use one at the same time one gets in', async () => {
    const cloud = await CloudProcess.start({ env: { CLOUDLET_ADMIN_KEY: '' } });
    const makeToken = async () => new URL(await makeSetupLink(cloud.dataDir)).searchParams.get('token') ?? '';
    try {
      const earlier = await makeToken();
      await cloud.crash();
      await cloud.start();
      const token = await makeToken();
      const client = await CheckedClient.open(cloud.api);
      const fields = (username: string, token: string) => ({
        json: { username, email: `${username}@example.org`, password: 'correct horse battery', token },
      });
      await client.refused(403, 'invalid_link', ['/api/setup', fields('early', earlier)]);
      const rivals = ['one', 'two', 'three'].map((name) => client.call('/api/setup', fields(name, token)));
      const statuses = (await Promise.all(rivals)).map(({ status }) => status).sort();
      assert.deepEqual(statuses, [201, 403, 403]);
    } finally {
      await cloud.stop();
    }
  });
});

/** The same sequence on a data directory with and without a server. */
async function tellAdminStory(operator: Operator, name: string, blobs: string): Promise<void> {
  const email = `${name}@example.org`;
  const made = await operator.succeed('admin', 'create', '--username', name, '--email', email);
  const key = /clk_[0-9A-Za-z]{38}/.exec(made)?.[0];
  const showKey = (username: string) => operator.succeed('admin', 'key', '--username', username);
  assert.equal(await showKey(name.toUpperCase()), key);
  const credits = ['admin', 'credits', '--username', name] as const;
  assert.match(await operator.succeed(...credits, '--amount', '2.5', '--reason', 'thanks'), /12\.5 credits/);
  assert.match(await operator.succeed(...credits, '--amount', '-0.5', '--reason', 'oops'), /12 credits/);
  const second = await operator.fail(1, 'admin', 'create', '--username', name.toUpperCase());
  assert.match(second, new RegExp(`an administrator ${name} .* already.* admin key --username ${name}\\.`));
  assert.match(await operator.fail(1, 'admin', 'create'), /already.* admin create --username NAME/);
  assert.match(await operator.fail(1, 'admin', 'create', '--username', 'a b'), /username/);
  assert.match(await operator.fail(1, 'admin', 'key', '--username', 'nobody-here'), /nobody-here/);
  await operator.fail(1, ...credits, '--amount=-1000', '--reason', 'too much');
  await operator.fail(2, ...credits);
  await operator.fail(2, ...credits, '--amount', 'much', '--reason', 'x');
  const rotated = await operator.succeed('keys', 'rotate');
  assert.match(rotated, /^Re-encrypting .*\nMaster key [0-9a-f]{16} is in use; \d+ secrets re-encrypted/);
  assert.equal(await showKey(name), key, 'secrets open under the new key');
  const scrubbed = await operator.succeed('scrub');
  assert.equal(scrubbed, `${blobs} and 0 databases verified; 0 damaged`);
}

// A rotation waits for ten seconds: the two wait at the same time.
describe('bin/cloudlet tells the same story', { concurrency: 2 }, () => {
  test('without a server', async () => {
    const operator = new Operator('offline');
    await operator.haveCloud();
    assert.match(
      await operator.fail(1, 'admin', 'setup-link'),
      /No server is running on \S+: start it first/,
    );
    await tellAdminStory(operator, 'boss', '0 blobs, 0 bytes, 0 object versions, 0 buckets');
  });

  test('beside a running server, which sees it at once', async () => {
    const operator = new Operator('online');
    await operator.haveCloud();
    await operator.succeed('admin', 'create', '--username', 'boss-before');
    await operator.succeed('admin', 'credits', '--username', 'boss-before', '--amount=2', '--reason', 'x');
    const env = { CLOUDLET_LOG_LEVEL: 'info' };
    const cloud = await CloudProcess.start({ dataDir: operator.dataDir, env });
    try {
      const key = await operator.succeed('admin', 'key', '--username', 'boss-before');
      const boss = await CheckedClient.open(cloud.api, key);
      assert.equal((await boss.expect(200, '/api/account')).credits, 12);
      await boss.expect(201, '/api/buckets', { json: { name: 'encrypted', encryption: true } });
      const { body } = await boss.upload('encrypted', 'a', 'x'.repeat(100_000));
      await tellAdminStory(operator, 'boss', '1 blob, 100000 bytes, 1 object version, 1 bucket');
      const printed = await operator.succeed('admin', 'reset-link', 'BOSS-before');
      const link =
        /^Anyone who opens .* for boss-before:\n(http\S+)$/.exec(printed)?.[1] ?? assert.fail(printed);
      const token = new URL(link).hash.slice('#token='.length);
      const json = { token, password: 'quite another word' };
      await CheckedClient.open(cloud.api).then((anyone) =>
        anyone.expect(200, '/api/reset-password', { json }),
      );
      assert.match(cloud.output, /"by":"the operator","msg":"a reset link was created"/);
      assert.ok(!cloud.output.includes(token));
      const guest = ['admin', 'create-account', '--username', 'guest', '--email', 'guest@example.org'];
      assert.match(await operator.succeed(...guest), /^Account guest \(.*\n.*for guest:\nhttp\S+#token=/);
      assert.match(await operator.fail(1, ...guest), /taken/);
      await operator.fail(2, ...guest.slice(0, 4));
      await operator.fail(1, 'admin', 'reset-link', 'nobody-here');
      await operator.fail(2, 'admin', 'reset-link');
      await operator.fail(2, 'admin', 'reset-link', 'a', 'b');
      assert.equal((await boss.download(body.object_id)).length, 100_000);
    } finally {
      await cloud.stop();
    }
  });
});

describe('bin/cloudlet', () => {
  const operator = new Operator('looked-at');

  test('doctor checks everything and changes nothing', async () => {
    const { code, stdout } = await operator.run('doctor');
    assert.equal(existsSync(operator.dataDir), false);
    assert.ok(code === 0 || code === 1, stdout);
    assert.match(stdout, /^\d+ failed, \d+ warnings?, \d+ ok$/m);
    assert.equal(code, / [1-9]\d* failed|^[1-9]\d* failed/m.test(stdout) ? 1 : 0);
    for (const line of stdout.trim().split('\n').slice(0, -1)) assert.match(line, /^(ok|warn|fail) +\S/);
    for (const subject of [/port/i, /clock/i, /qemu/i, /kvm/i, /disk|data/i]) assert.match(stdout, subject);
  });

  test('doctor knows both ports of a Cloudlet that runs', async () => {
    const cloud = await CloudProcess.start();
    const [CLOUDLET_PORT, CLOUDLET_DATA_PORT] = [cloud.api, cloud.data].map((url) => new URL(url).port) as [
      string,
      string,
    ];
    const env = { CLOUDLET_DATA_DIR: cloud.dataDir, CLOUDLET_PORT, CLOUDLET_DATA_PORT };
    const { stdout } = await runCloudlet(['doctor'], { env }).finally(() => cloud.stop());
    assert.match(stdout, /^ok +API port .*in use by the running Cloudlet/m);
    assert.match(stdout, /^ok +data port .*in use by the running Cloudlet/m);
  });

  test('explains itself and every command', async () => {
    const overview = await operator.succeed('--help');
    for (const command of ['start', 'admin', 'scrub', 'keys', 'doctor']) {
      assert.ok(overview.includes(command), command);
      const help = await operator.succeed(command, '--help');
      assert.match(help, new RegExp(`^Usage: cloudlet ${command}`));
      assert.equal(await operator.succeed('help', command), help);
    }
  });

  test('says its version', async () => {
    assert.match(await operator.succeed('--version'), /^cloudlet \d+\.\d+\.\d+$/);
  });

  test('makes no cloud where there is none, and names the path it searched', async () => {
    for (const command of [
      'admin setup-link',
      'admin create',
      'admin key',
      'scrub',
      'ledger verify',
      'keys rotate',
    ]) {
      const said = await operator.fail(1, ...command.split(' '));
      assert.ok(said.includes(`There is no cloud in ${operator.dataDir}: `), said);
      assert.match(said, /--data-dir or CLOUDLET_DATA_DIR/);
    }
    assert.equal(existsSync(operator.dataDir), false);
    mkdirSync(operator.dataDir);
    await operator.fail(1, 'admin', 'create');
    assert.deepEqual(readdirSync(operator.dataDir), []);
  });

  test('--data-dir names the cloud, before or after the command, against the environment', async () => {
    const named = new Operator('named');
    await named.haveCloud();
    const made = await operator.succeed('admin', 'create', '--data-dir', named.dataDir);
    const key = /clk_[0-9A-Za-z]{38}/.exec(made)?.[0];
    assert.equal(await operator.succeed(`--data-dir=${named.dataDir}`, 'admin', 'key'), key);
    assert.equal(await named.succeed('admin', 'key'), key);
    assert.match(await operator.fail(1, 'admin', 'key', '--data-dir', '/no/such/place'), /\/no\/such\/place/);
  });

  test('--port is the port of the API', async () => {
    const port = String(await freePort());
    const words = ['bin/cloudlet', 'start', '--port', port];
    const cloud = await CloudProcess.start({ command: words, env: { CLOUDLET_PORT: 'of no importance' } });
    try {
      assert.equal(new URL(cloud.api).port, port);
      assert.equal((await fetch(`${cloud.api}/healthz`)).status, 200);
    } finally {
      await cloud.stop();
    }
    assert.match(await operator.fail(2, 'start', '--port', '80a'), /--port: must be a whole number/);
    assert.match(await operator.fail(2, 'scrub', '--port', '80'), /Unknown option '--port'/);
    for (const words of [
      ['start', '--prot', '80'],
      ['start', '--prot=80'],
      ['--prot', '80', 'start'],
    ])
      assert.match(await operator.fail(2, ...words), /'?--prot'? \(did you mean --port\?\)/);
  });

  test('refuses what it does not know with exit code 2', async () => {
    assert.match(await operator.fail(2, 'fly'), /unknown command "fly"/);
    assert.match(await operator.fail(2, 'docter'), /did you mean doctor\?/);
    assert.match(await operator.fail(2, 'help', 'docter'), /did you mean doctor\?/);
    await operator.fail(2, 'constructor');
    await operator.fail(2, 'admin');
    await operator.fail(2, 'admin', 'fly');
    await operator.fail(2, 'admin', 'create', '--fly');
    await operator.fail(2, 'keys');
    await operator.fail(2, 'scrub', 'now');
    await operator.fail(2, 'start', 'now');
    assert.equal((await operator.run('doctor', 'now')).code, 2);
    assert.equal((await operator.run()).code, 2);
  });
});

describe('the control socket', () => {
  /** Status of a request to it; rejects if no program listens. */
  const ask = (dataDir: string, headers: Record<string, string> = {}): Promise<number | undefined> => {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const socketPath = join(dataDir, 'control.sock');
    const asked = request({ socketPath, path: '/api/admin/accounts', headers, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.once('error', reject).end();
    return promise;
  };
  const withToken = (token: string) => ({ 'x-cloudlet-control': token });

  test('makes nobody the operator who does not know the token, which is another after each start', async () => {
    const cloud = await CloudProcess.start();
    try {
      const file = join(cloud.dataDir, 'control.token');
      assert.equal(await ask(cloud.dataDir), 401);
      const token = readFileSync(file, 'utf8');
      assert.equal(statSync(file).mode & 0o777, 0o600);
      for (const wrong of ['', 'x', `${token}x`, token.slice(1)])
        assert.equal(await ask(cloud.dataDir, withToken(wrong)), 401, wrong);
      assert.equal(await ask(cloud.dataDir, withToken(token)), 200);
      await cloud.crash();
      await cloud.start();
      assert.equal(await ask(cloud.dataDir, withToken(token)), 401);
      assert.equal(await ask(cloud.dataDir, withToken(readFileSync(file, 'utf8'))), 200);
    } finally {
      await cloud.stop();
    }
  });
});
