/**
 * The client on a computer with Node that can only reach the port of the API: installed from its package, it
 * syncs, and opens machines and databases, as in README. Needs root.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { NODE_20 } from '../acceptance/cli-kit.ts';
import * as net from '../acceptance/private-network.ts';
import { cannotRunGuests, removeAll } from '../acceptance/vms-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { cannotMakeTree, makeTree } from './debian-tree.ts';

/** The cloud's end of the cable, and its published port. */
const HOST = '10.99.0.1';
const PUBLISHED = 62_100;
const NPM = spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim();
const skip =
  cannotRunGuests() || net.cannotMakeNetworks() || cannotMakeTree() || (NPM === '' && 'there is no npm');
/** `vm ssh` calls ssh; curl only checks the published port. */
const PACKAGES = 'openssh-client,curl';
const ENTER = `set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" sh -euc "$1"`;
const WEB = '#!/bin/sh\nmkdir -p /www\necho hello from web-1 >/www/index.html\nhttpd -p 80 -h /www\n';

/** A Debian with Node and npm. `WALK_TREE` names an existing one, which is kept. */
function makeComputer(): string {
  const tree = mkdtempSync(join(tmpdir(), 'cloudlet-walk-'));
  makeTree(tree, { suite: 'bookworm', packages: PACKAGES });
  cpSync(NODE_20 ?? process.execPath, join(tree, 'usr/bin/node'), { dereference: true });
  const npm = dirname(dirname(realpathSync(NPM)));
  cpSync(npm, join(tree, 'usr/lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(tree, 'usr/bin/npm'));
  mkdirSync(join(tree, 'root/trip/day'), { recursive: true });
  writeFileSync(join(tree, 'root/trip/note.txt'), 'a note\n');
  writeFileSync(join(tree, 'root/trip/day/more.txt'), 'more\n');
  writeFileSync(join(tree, 'root/web.sh'), WEB);
  return tree;
}

function walk(tree: string): void {
  const far = spawn('unshare', ['-n', 'sleep', 'infinity'], { stdio: 'ignore' });
  let cloud: CloudProcess | undefined;
  let user: CheckedClient | undefined;
  let port = '';
  let engines: string[] = [];

  /** The output of a sh script on that computer, on both streams. Rejects when it fails. */
  async function there(script: string): Promise<string> {
    const words = ['-t', String(far.pid), '-n', 'unshare', '--mount', '--pid', '--fork', '--kill-child'];
    const env = {
      PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/bin',
      HOME: '/root',
      CLOUD: `http://${HOST}:${port}`,
    };
    const all = [...words, 'sh', '-c', ENTER, tree, `cd; ${script}`];
    const child = spawn('nsenter', all, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 200_000 });
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    assert.equal(code, 0, `${script}\n${out}\n${err}`);
    return out + err;
  }

  before(async () => {
    cloud = await CloudProcess.start({ env: { CLOUDLET_HOST: '0.0.0.0' } });
    port = new URL(cloud.api).port;
    net.ip(`link add near type veth peer name far netns ${far.pid}`);
    net.ip(`addr add ${HOST}/24 dev near`);
    net.ip('link set near up');
    for (const line of ['addr add 10.99.0.2/24 dev far', 'link set far up', 'link set lo up'])
      spawnSync('nsenter', ['-t', String(far.pid), '-n', 'ip', ...line.split(' ')]);
    const open = `iifname "near" tcp dport { ${port}, ${PUBLISHED} } accept; iifname "near" drop`;
    const rules = `table inet walk {\nchain in {\ntype filter hook input priority 10; ${open}\n}\n}\n`;
    const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: rules, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const anyone = await CheckedClient.open(cloud.api);
    const { api_key } = await anyone.register();
    user = anyone.as(api_key);
    writeFileSync(join(tree, 'root/key'), api_key, { mode: 0o600 });
    const listed = await user.expect(200, '/api/database-engines');
    engines = listed.flatMap((one: { engine: string; available: boolean }) =>
      one.available ? [one.engine] : [],
    );
  });
  after(async () => {
    far.kill('SIGKILL');
    if (user !== undefined) await removeAll(user);
    await cloud?.stop();
  });

  test('it is installed from the cloud, and signs in', async () => {
    const data = new URL(String(cloud?.data)).port;
    const ask = `curl -s -m 2 http://${HOST}:${data}/ && echo open || echo closed`;
    assert.equal(await there(ask), 'closed\n');
    // Over http it is not sent to another computer: a person carries it there.
    assert.match(await there('curl -s "$CLOUD/cli/cloudlet.tgz"'), /https_required/);
    const client = await fetch(`${cloud?.api}/cli/cloudlet.tgz`);
    writeFileSync(join(tree, 'root/cloudlet.tgz'), Buffer.from(await client.arrayBuffer()));
    await there('npm install --global ./cloudlet.tgz');
    assert.match(await there('cloudlet login "$CLOUD" --key-file key; rm key'), /Signed in to /);
  });

  test('it syncs a folder, through the port of the API', async () => {
    await there('cloudlet mb photos');
    assert.match(await there('cloudlet sync trip s3://photos/trip'), /2 files, 12 B/);
    assert.match(await there('cloudlet sync trip s3://photos/trip'), /2 files unchanged/);
    assert.equal(await there('cloudlet sync -q s3://photos/trip back; diff -r trip back'), '');
  });

  test('it opens a machine, one of its ports, and one for everybody', async () => {
    assert.match(await there('cloudlet vm create web-1 --start --user-data web.sh'), /web-1 is running/);
    assert.match(await there('cloudlet vm ssh web-1 -- uname -sr'), /^Linux 6\./);
    const wait = 'until curl -sf http://127.0.0.1:8888/; do sleep 0.5; done';
    assert.match(await there(`cloudlet vm forward web-1 8888:80 & ${wait}`), /^hello from web-1$/m);
    const published = await there(`cloudlet vm publish web-1 80 --public-port ${PUBLISHED}`);
    assert.match(published, /:62100 forwards to port 80/);
    assert.equal(await there(`curl -s http://${HOST}:${PUBLISHED}/`), 'hello from web-1\n');
  });

  for (const engine of ['sqlite', 'postgresql', 'mysql', 'mongodb'])
    test(`it opens a ${engine} database`, async (t) => {
      if (!engines.includes(engine)) return t.skip(`there is no ${engine} here`);
      await there(`cloudlet db create shop-${engine} --engine ${engine}`);
      const statements =
        engine === 'mongodb'
          ? '{"insert":"t","documents":[{"answer":42}]}\\n{"find":"t"}\\n'
          : 'SELECT 40 + 2 AS answer;\\n';
      const said = await there(`printf '${statements}' | cloudlet db connect shop-${engine}`);
      assert.match(said, engine === 'mongodb' ? /42/ : /answer\n42\n/);
    });
}

if (net.isInside()) describe('from a computer with Node only', () => walk(process.env.WALK_TREE ?? ''));
else {
  test('a computer that reaches only the API installs the client and does everything', { skip }, () => {
    const kept = process.env.WALK_TREE;
    const tree = kept ?? makeComputer();
    process.env.WALK_TREE = tree;
    try {
      const { status, output } = net.runInside(import.meta.filename);
      assert.equal(status, 0, output);
    } finally {
      if (kept === undefined) rmSync(tree, { recursive: true, force: true });
    }
  });
}
