import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isAppError } from '../../platform/errors.ts';
import { Passwords, readBlocklist } from './passwords.ts';

const directory = mkdtempSync(join(tmpdir(), 'cloudlet-blocklist-'));
after(() => rmSync(directory, { recursive: true }));
const path = join(directory, 'list');
const cost = { memoryKib: 64, passes: 1 };

test('what is on the list is refused, however it is written; all else is not', async () => {
  writeFileSync(path, '\ufeffpassword1\r\n\nQwertyuiop\npassw\u00f6rter\n');
  const passwords = new Passwords({ cost, blocklist: readBlocklist(path) });
  for (const password of ['password1', 'PassWord1', 'qwertyuiop', 'passwo\u0308rter']) {
    await assert.rejects(
      passwords.hash(password),
      (error) => isAppError(error, 'invalid_request') && error.fields?.[0]?.field === 'password',
      password,
    );
  }
  for (const password of ['password12', '', 'correct horse']) await passwords.hash(password);
  assert.equal(await passwords.verify('password1', null), false);
});

test('the commonest are refused to administrators, and to nobody else', async () => {
  const passwords = new Passwords({ cost });
  for (const password of ['password', 'Password', '123456789', 'iloveyou']) {
    await assert.rejects(passwords.hash(password, { isAdmin: true }), (error) =>
      isAppError(error, 'invalid_request'),
    );
    await passwords.hash(password);
  }
  await passwords.hash('correct horse battery', { isAdmin: true });
});

test('no path is no list; a file that is not there, or far too large, is said so in one line', () => {
  assert.equal(readBlocklist('').size, 0);
  const isOneLine = (error: Error) => /^CLOUDLET_PASSWORD_BLOCKLIST: .*$/.test(error.message);
  assert.throws(() => readBlocklist(join(directory, 'none')), isOneLine);
  assert.throws(() => readBlocklist(directory), isOneLine);
  truncateSync(path, 16 * 2 ** 20 + 1);
  assert.throws(() => readBlocklist(path), /larger than 16 MiB/);
});
