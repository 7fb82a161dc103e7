import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { KeysAnswer } from '../../../../libs/net/index.ts';
import { notInstalled } from '../../../../scripts/installed.ts';
import { testSpec } from '../../../testing/qemu-fixture.ts';
import { isoImage } from './iso-image.ts';
import { seedFiles, seedImage } from './seed.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJl me@home: # "x"';
const PLAIN_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJl me@home_x_';

test('keys are in meta-data, whatever the user-data is, and cannot be more than keys', () => {
  for (const userData of [null, '#!/bin/sh\necho hi\n', '#cloud-config\npackages: [vim]\n']) {
    const sshKeys = [KEY, 'ssh-rsa \t AAAA', 'no key\ninstance-id: x', 'command="x" ssh-rsa AAAA'];
    const spec = { ...testSpec('tiny'), sshKeys, userData, hostname: 'web-1' };
    const files = seedFiles(spec);
    assert.equal(
      files['meta-data'],
      `instance-id: ${spec.vmId}\nlocal-hostname: web-1\npublic-keys:\n  - ${PLAIN_KEY}\n  - ssh-rsa AAAA\n`,
    );
    if (userData !== null) assert.equal(files['user-data'], userData);
    else assert.match(files['user-data'], /^#cloud-config\nssh_authorized_keys:\n {2}- ssh-ed25519/);
    assert.match(files['network-config'], new RegExp(`macaddress: "${spec.network.mac}"`));
  }
});

test('a guest with its own address is told it, and asks nobody', () => {
  const staticNetwork = { address: '10.80.0.2/16', gateway: '10.80.0.1', resolvers: ['9.9.9.9'] };
  const config = seedFiles({ ...testSpec('tiny'), staticNetwork })['network-config'];
  assert.match(
    config,
    /addresses:\n {6}- 10\.80\.0\.2\/16\n[\s\S]*via: 10\.80\.0\.1\n[\s\S]*addresses: \[9\.9\.9\.9\]/,
  );
  assert.ok(!config.includes('dhcp4'));
  const without = { ...staticNetwork, resolvers: [] };
  assert.ok(
    !seedFiles({ ...testSpec('tiny'), staticNetwork: without })['network-config'].includes('nameservers'),
  );
});

test('the private device is told its address and its name server, after the other device', () => {
  const plain = testSpec('tiny');
  const privateLink = { mac: '56:54:00:00:00:01', address: '10.80.0.1/11', resolver: '10.64.0.1' };
  const config = (network: object) =>
    seedFiles({ ...plain, network: { ...plain.network, ...network } })['network-config'];
  assert.equal(
    config({ privateLink }),
    `${config({})}  private:
    match:
      macaddress: "56:54:00:00:00:01"
    addresses: [10.80.0.1/11]
    nameservers:
      addresses: [10.64.0.1]
      search: [internal]
`,
  );
});

/** By absolute paths: PATH is for the programs that the code under test finds. */
const SHELLS = ['/bin/sh', '/bin/bash'].filter((path) => existsSync(path));
const run = promisify(execFile);

const realPathOf = (name: string) => {
  const found = ['/usr/bin', '/bin'].map((folder) => join(folder, name)).find((path) => existsSync(path));
  return found ?? execFileSync('which', [name], { encoding: 'utf8' }).trim();
};

/** The work of a guest with a private network at each boot. */
function bootcmdOf(plain: ReturnType<typeof testSpec>): string {
  const privateLink = { mac: '56:54:00:00:00:01', address: '10.80.0.1/11', resolver: '10.64.0.1' };
  const vendor = seedFiles({ ...plain, network: { ...plain.network, privateLink } })['vendor-data'];
  return JSON.parse(/^bootcmd:\n {2}- \[sh, -c, (".*")\]$/m.exec(vendor)?.[1] ?? '""');
}

test('sshd of an image with cloud-init asks for lent keys, unless it asks something else', (t) => {
  const plain = testSpec('tiny');
  assert.doesNotMatch(seedFiles(plain)['vendor-data'], /bootcmd/);
  const etc = mkdtempSync(join(tmpdir(), 'cloudlet-etc-'));
  t.after(() => rmSync(etc, { recursive: true }));
  const script = bootcmdOf(plain).replaceAll('/etc/', `${etc}/`).replaceAll('/usr/lib/', `${etc}/lib/`);
  const boot = () => execFileSync('sh', ['-c', script], { stdio: 'pipe' });
  const settings = join(etc, 'ssh/sshd_config.d');
  assert.throws(boot, 'no sshd that reads further settings');
  mkdirSync(settings, { recursive: true });
  const program = join(etc, 'lib/cloudlet/ssh-keys');
  for (let round = 0; round < 2; round++) boot();
  const line = `AuthorizedKeysCommand ${program}\nAuthorizedKeysCommandUser nobody\n`;
  assert.equal(readFileSync(join(settings, 'zz-cloudlet.conf'), 'utf8'), line);
  assert.match(readFileSync(program, 'utf8'), /dev\/tcp\/10\.64\.0\.1\/80\n/);
  for (const shell of SHELLS) execFileSync(shell, ['-n', program]);
  writeFileSync(join(etc, 'ssh/sshd_config'), 'authorizedkeyscommand /usr/bin/own\n');
  boot();
  assert.deepEqual(readdirSync(settings), [], "the user's own");
  rmSync(join(etc, 'ssh/sshd_config'));
  boot();
  assert.deepEqual(readdirSync(settings), ['zz-cloudlet.conf']);
  mkdirSync(join(etc, 'cloudlet'));
  writeFileSync(join(etc, 'cloudlet/no-lent-keys'), '');
  boot();
  assert.deepEqual(readdirSync(settings), []);
});

describe('any shell of an image has a way to ask for the keys', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-keys-'));
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.pipe(new KeysAnswer(async () => ['ssh-ed25519 AAAA'])).pipe(socket);
  }).listen(0, '127.0.0.1');
  before(() => once(server, 'listening'));
  after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });

  for (const [way, helpers] of Object.entries({
    curl: [],
    wget: ['timeout'],
    bash: ['timeout', 'sed'],
    python3: ['timeout'],
  })) {
    test(`by ${way}`, { skip: notInstalled(way, 'timeout') }, async () => {
      const { port } = server.address() as AddressInfo;
      const [, text = ''] = /<<'END'\n(.*\n)END\n/s.exec(bootcmdOf(testSpec('tiny'))) ?? [];
      const program = join(folder, way);
      writeFileSync(
        program,
        text
          .replaceAll('10.64.0.1/80', `127.0.0.1/${port}`)
          .replaceAll('"10.64.0.1", 80', `"127.0.0.1", ${port}`)
          .replaceAll('10.64.0.1', `127.0.0.1:${port}`),
      );
      const path = join(folder, `bin-${way}`);
      mkdirSync(path);
      for (const name of [way, ...helpers]) symlinkSync(realPathOf(name), join(path, name));
      for (const shell of SHELLS) {
        const { stdout } = await run(shell, [program], { env: { PATH: path } });
        assert.equal(stdout.trimEnd(), 'ssh-ed25519 AAAA cloudlet-lent', shell);
      }
    });
  }
});

test('URIs of databases are a file of the seed, and one that cloud-init writes', () => {
  const databaseUris = { SHOP_URL: "postgresql://u:p@shop.db.internal:5432/d'x" };
  const files: Record<string, string> = seedFiles({ ...testSpec('tiny'), databaseUris });
  assert.equal(files['databases.env'], "SHOP_URL='postgresql://u:p@shop.db.internal:5432/d%27x'\n");
  const [, content = ''] = /^ {4}content: (\S+)$/m.exec(files['vendor-data'] ?? '') ?? [];
  assert.equal(Buffer.from(content, 'base64').toString(), files['databases.env']);
  assert.match(
    files['vendor-data'] ?? '',
    /^write_files:\n {2}- path: \/etc\/cloudlet\/databases\.env\n {4}permissions: "0600"$/m,
  );
  const without: Record<string, string> = seedFiles(testSpec('tiny'));
  assert.deepEqual(
    [without['databases.env'], without['vendor-data']?.includes('write_files')],
    [undefined, false],
  );
});

test('the same guest always gets the same seed', () => {
  const spec = { ...testSpec('tiny'), sshKeys: [KEY] };
  assert.ok(seedImage(spec).equals(seedImage(spec)));
});

test('the label and both descriptors are where ISO 9660 says', () => {
  const image = isoImage('cidata', [{ name: 'meta-data', content: Buffer.from('x') }]);
  for (const [sector, type] of [
    [16, 1],
    [17, 2],
    [18, 255],
  ] as const) {
    assert.equal(image[sector * 2048], type);
    assert.equal(image.toString('latin1', sector * 2048 + 1, sector * 2048 + 6), 'CD001');
  }
  assert.equal(image.toString('latin1', 16 * 2048 + 40, 16 * 2048 + 72).trim(), 'cidata');
  assert.equal(image.readUInt32LE(16 * 2048 + 80) * 2048, image.length);
});

test('Linux mounts it and reads every file under its own name', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-seed-'));
  const target = join(folder, 'mnt');
  try {
    const files = [
      { name: 'user-data', content: Buffer.from('#!/bin/sh\n'.repeat(6000)) },
      { name: 'meta-data', content: Buffer.from('instance-id: x\n') },
      { name: 'empty', content: Buffer.alloc(0) },
      { name: 'network-config', content: Buffer.alloc(2048, 'n') },
    ];
    writeFileSync(join(folder, 'seed.iso'), isoImage('cidata', files));
    mkdirSync(target);
    try {
      execFileSync('mount', ['-o', 'loop,ro', join(folder, 'seed.iso'), target], { stdio: 'pipe' });
    } catch (error) {
      const [said] = String((error as Error).message)
        .split('\n')
        .slice(1);
      return t.skip(notInstalled('mount') || `no ISO image can be mounted here: ${said}`);
    }
    try {
      assert.deepEqual(readdirSync(target).sort(), files.map(({ name }) => name).sort());
      for (const { name, content } of files)
        assert.ok(readFileSync(join(target, name)).equals(content), name);
    } finally {
      execFileSync('umount', [target]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
