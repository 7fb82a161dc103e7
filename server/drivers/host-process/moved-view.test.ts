/** A running process gets another folder, with each kind of isolation that this host allows. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { systemClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { noUsers, testUidBase } from '../../testing/own-ground.ts';
import { HostProcesses } from './host-processes.ts';
import { findIsolation } from './isolation.ts';
import { canMoveViews, moveView, needsMover } from './moved-view.ts';

const UID = testUidBase();
const [asRoot, asUser] = await Promise.all([findIsolation(true), findIsolation(false)]);
/** The report of a process after it was moved, and its descriptors and rights. */
const SCRIPT = 'read -r go; cd "$go"; ls; ls /proc/$$/fd; grep CapEff /proc/$$/status';
const CASES = {
  'with users of their own': noUsers === null && asRoot.hasView ? asRoot : null,
  'as our own user, in a namespace of users': needsMover(asUser) ? asUser : null,
};

for (const [name, isolation] of Object.entries(CASES)) {
  const skip = (isolation === null || !canMoveViews(isolation)) && 'this host does not allow it';
  test(`a process is moved ${name}, and has nothing more than before`, { skip }, async (t) => {
    if (isolation === null) return;
    const ground = fs.mkdtempSync(join(tmpdir(), 'cloudlet-moved-'));
    t.after(() => fs.rmSync(ground, { recursive: true }));
    const uid = name.startsWith('with') ? UID : null;
    const [first, next] = ['first', "it's $HOME \\ the `next`"].map((folder) => {
      const path = join(ground, folder);
      fs.mkdirSync(path, { mode: 0o700 });
      fs.writeFileSync(join(path, `${folder.slice(-5)}.file`), '');
      if (uid !== null) fs.chownSync(path, uid, uid);
      return path;
    });
    const group = 'cloudlet-moved-test';
    const hasUsers = uid !== null;
    const processes = new HostProcesses({ clock: systemClock, group, hasUsers, isolation, ground });
    const isMovable = needsMover(isolation);
    const running = await processes.start(
      {
        name: `test-moved-${process.pid}`,
        command: '/bin/sh',
        args: ['-c', SCRIPT],
        uid,
        folder: first ?? '',
        network: 'none',
        memoryMb: 512,
      },
      { stdio: ['pipe', 'pipe', 'pipe'], isMovable },
    );
    const { stdin, stdout, stderr, stdio } = running.child ?? {};
    const said = Promise.all([stdout, stderr].map((stream) => (stream ? text(stream) : '')));
    const mover = isMovable ? (stdio?.[4] as Socket) : null;
    const how = { isolation, ground, mover };
    const at = await moveView(running.identity, { ...how, folder: next ?? '' });
    stdin?.end(`${at}\n`);
    const [output = '', errors] = await said;
    assert.equal(errors, '');
    const lines = output.trimEnd().split('\n');
    assert.deepEqual(lines.slice(0, -1), ['next`.file', '0', '1', '2']);
    assert.match(lines.at(-1) ?? '', /^CapEff:\s+0+$/);
    await running.ended;
    await assert.rejects(moveView(running.identity, { ...how, folder: next ?? '' }));
    await eventually(() => !fs.existsSync(`/proc/${running.pid}`));
  });
}

test('a process whose mover cannot mount the folder is told of as such', {
  skip: !needsMover(asUser) && 'this host does not allow it',
}, async (t) => {
  const ground = fs.mkdtempSync(join(tmpdir(), 'cloudlet-moved-'));
  t.after(() => fs.rmSync(ground, { recursive: true }));
  const deps = {
    clock: systemClock,
    group: 'cloudlet-moved-test',
    hasUsers: false,
    isolation: asUser,
    ground,
  };
  const running = await new HostProcesses(deps).start(
    {
      name: `test-unmoved-${process.pid}`,
      command: '/bin/sleep',
      args: ['60'],
      uid: null,
      folder: ground,
      network: 'none',
      memoryMb: 512,
    },
    { stdio: ['ignore', 'pipe', 'pipe'], isMovable: true },
  );
  const mover = running.child?.stdio[4] as Socket;
  const folder = join(ground, 'not-there');
  const moved = moveView(running.identity, { isolation: asUser, folder, ground, mover });
  await assert.rejects(moved, /could not be mounted/);
  await running.end({ graceMs: 0 });
});
