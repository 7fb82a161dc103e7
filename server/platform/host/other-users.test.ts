import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { noGuestUsers } from '../../testing/own-ground.ts';
import { judgeRights, type OwnRights } from './other-users.ts';

const RANGE = { first: 600_000_000, count: 1000 };
const SHARED = "machines share Cloudlet's own user";
const HOST = '         0          0 4294967295\n';
const ROOT: OwnRights = { uid: 0, uidMap: HOST, gidMap: HOST, capabilities: '000001ffffffffff' };
const judge = (changes: Partial<OwnRights>) => judgeRights({ ...ROOT, ...changes }, RANGE);

test('root of a host may run processes as other users, nobody else may', () => {
  assert.equal(judge({}), null);
  assert.equal(judge({ uidMap: '', gidMap: '', capabilities: '' }), null);
  assert.equal(judge({ uid: 1000 })?.problem, `${SHARED} because it is not root`);
});

test('root of a user namespace may when it has all the ids, by whatever lines', () => {
  const docker = '0 100000 65536\n';
  const uids = judge({ uidMap: docker, gidMap: docker });
  assert.equal(uids?.problem, `${SHARED} because this user namespace has no user ids 600000000 to 600000999`);
  assert.match(uids.fix, /CLOUDLET_VM_UID_BASE/);
  assert.match(judge({ gidMap: docker })?.problem ?? '', /no group ids/);
  const parts = '600000500 700000 500\n0 100000 65536\n600000000 800000 500\n';
  assert.equal(judge({ uidMap: parts, gidMap: parts }), null);
  assert.match(judge({ uidMap: parts.replace('500\n', '499\n') })?.problem ?? '', /no user ids/);
});

test('root without capabilities may not, and hears which are missing', () => {
  assert.equal(
    judge({ capabilities: '000001ffffffff5f' })?.problem,
    `${SHARED} because it lacks CAP_KILL, CAP_SETUID`,
  );
  assert.equal(judge({ capabilities: '0' })?.fix.split(', ').length, 6);
  // The map of a Docker container.
  assert.equal(judge({ capabilities: '00000000a80425fb' }), null);
});

const ASK = `
import { whyNoOtherUsers } from ${JSON.stringify(fileURLToPath(new URL('./other-users.ts', import.meta.url)))};
const [directory, first, count] = process.argv.slice(-3);
const range = { first: Number(first), count: Number(count) };
console.log(JSON.stringify(whyNoOtherUsers(range, directory)));`;

const MAP = '0 0 1\n5000 900000 10\n';

/** In a user namespace with this map of users and groups. `groups`: whether it may change them. */
function askIn(directory: string, groups: 'allow' | 'deny'): unknown {
  // The shell waits for its maps, which only an outside process may write.
  const script = 'echo ready; read line; exec "$@"';
  const node = [process.execPath, '--input-type=module-typescript', '-e', ASK, '--', directory, '5000', '10'];
  const words = ['--user', 'sh', '-c', script, 'sh', ...node];
  const outside = `
    const { spawn } = require('node:child_process');
    const { writeFileSync } = require('node:fs');
    const child = spawn('unshare', JSON.parse(process.argv[1]), { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdout.once('data', () => {
      const tell = (name, text) => writeFileSync('/proc/' + child.pid + '/' + name, text);
      tell('setgroups', process.argv[2]);
      for (const name of ['uid_map', 'gid_map']) tell(name, ${JSON.stringify(MAP)});
      child.stdout.pipe(process.stdout);
      child.stdin.end('\\n');
    });`;
  const asked = spawnSync(process.execPath, ['-e', outside, JSON.stringify(words), groups], {
    encoding: 'utf8',
  });
  return JSON.parse(asked.stdout || JSON.stringify(asked.stderr));
}

const isAble = !noGuestUsers && spawnSync('unshare', ['--user', 'true']).status === 0;

test('it is tried in a user namespace, and leaves no trace', {
  skip: isAble ? false : 'only root of a host gives a user namespace more ids than one',
}, (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-users-'));
  t.after(() => rmSync(directory, { recursive: true }));
  assert.equal(askIn(directory, 'allow'), null);
  assert.deepEqual(askIn(directory, 'deny'), {
    problem: `${SHARED} because this user namespace does not let it change users (setpriv fails)`,
    fix: 'run Cloudlet as root of the host',
  });
  assert.deepEqual(readdirSync(directory), []);
});
