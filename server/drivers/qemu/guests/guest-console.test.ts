import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { noGuestUsers } from '../../../testing/own-ground.ts';
import { FILES } from '../arguments.ts';
import { lendFile } from '../images/disk.ts';
import { readLog, trimLog } from './guest-console.ts';

const MIB = 2 ** 20;
const root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-console-log-'));
after(() => fs.rmSync(root, { recursive: true, force: true }));

function guestFolder(): string {
  const folder = fs.mkdtempSync(join(root, 'guest-'));
  fs.chmodSync(folder, 0o700);
  return folder;
}

test('a log that grew too long keeps its newest part', () => {
  const log = join(guestFolder(), FILES.consoleLog);
  fs.writeFileSync(log, Buffer.alloc(9 * MIB, 'a'));
  fs.appendFileSync(log, 'the end');
  trimLog(dirname(log));
  assert.equal(fs.statSync(log).size, MIB);
  assert.ok(fs.readFileSync(log, 'latin1').endsWith('aaathe end'));
});

test('a file that was lent to a guest is not cut, though the guest gave it the name of its log', () => {
  const folder = guestFolder();
  const kernel = join(root, 'kernel');
  fs.writeFileSync(kernel, Buffer.alloc(9 * MIB, 'k'), { mode: 0o444 });
  lendFile(kernel, join(folder, FILES.kernel), null);
  // It owns its folder, so it can do this with any file in it.
  fs.renameSync(join(folder, FILES.kernel), join(folder, FILES.consoleLog));
  trimLog(folder);
  assert.equal(fs.statSync(kernel).size, 9 * MIB);
});

test('what is no file of the guest instead of its log is neither read nor cut, nor waited for', () => {
  const folder = guestFolder();
  const log = join(folder, FILES.consoleLog);
  const secret = join(root, 'secret');
  fs.writeFileSync(secret, Buffer.alloc(9 * MIB, 's'));
  const put = {
    'a link': () => fs.symlinkSync(secret, log),
    'the file itself, by another name': () => fs.linkSync(secret, log),
    'a pipe': () => void execFileSync('mkfifo', [log]),
    'a folder': () => fs.mkdirSync(log),
    nothing: () => {},
  };
  for (const [what, make] of Object.entries(put)) {
    make();
    trimLog(folder);
    assert.equal(readLog(folder, 100).length, 0, what);
    assert.equal(fs.statSync(secret).size, 9 * MIB, what);
    fs.rmSync(log, { recursive: true, force: true });
  }
  fs.writeFileSync(log, 'hello');
  assert.equal(Buffer.from(readLog(folder, 4)).toString(), 'ello');
});

test('nor is a file of another user', { skip: noGuestUsers }, () => {
  const folder = guestFolder();
  const log = join(folder, FILES.consoleLog);
  fs.writeFileSync(log, Buffer.alloc(9 * MIB, 'k'));
  fs.chownSync(folder, 600_000_001, 600_000_001);
  trimLog(dirname(log));
  assert.equal(fs.statSync(log).size, 9 * MIB);
});
