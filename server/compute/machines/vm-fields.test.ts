import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isAppError } from '../../platform/errors.ts';
import { cases } from '../../testing/cases.ts';
import type { NewVm } from '../schema.ts';
import { hostnameOf } from './runs.ts';
import { checkNewVm, sshKeyProblem, vmNameProblem } from './vm-fields.ts';

const ID = 'vm-01hzzzzzzz0123456789abcdef';
const GOOD: NewVm = { name: 'web', instance_type: 't2.micro' };

/** A key line with that type inside, and optionally another type outside. */
function keyLine(type: string, outside = type, bytes = 40): string {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(type.length);
  const blob = Buffer.concat([length, Buffer.from(type), Buffer.alloc(bytes, 7)]);
  return `${outside} ${blob.toString('base64')} me@here`;
}
const ED = keyLine('ssh-ed25519');

const fieldsOf = (input: NewVm) => {
  try {
    checkNewVm(input);
  } catch (error) {
    if (isAppError(error, 'invalid_request')) return error.fields?.map(({ field }) => field);
  }
  return [];
};

test('every wrong field is named at once', () => {
  const wrong = {
    name: ' \n ',
    instance_type: 't9.huge',
    tags: 'a\u0000b',
    ssh_keys: [ED, 'nonsense'],
    user_data: 'x'.repeat(65_537),
  };
  assert.deepEqual(fieldsOf(wrong), ['name', 'instance_type', 'tags', 'ssh_keys.1', 'user_data']);
  assert.throws(() => checkNewVm({ ...GOOD, instance_type: 'x' }), /t2\.micro.*p3\.2xlarge/);
});

test('names are trimmed, ports are one ascending list, user data is counted in bytes', () => {
  const checked = checkNewVm({ ...GOOD, name: '  my web ', ports: [9000, 22, 81], user_data: '' });
  assert.equal(checked.name, 'my web');
  assert.deepEqual(checked.ports, [22, 80, 81, 443, 8080, 9000]);
  assert.equal(checked.userData, null);
  assert.deepEqual(fieldsOf({ ...GOOD, user_data: `#!${'ü'.repeat(32_767)}` }), []);
  assert.deepEqual(fieldsOf({ ...GOOD, user_data: `#!${'ü'.repeat(32_767)}x` }), ['user_data']);
});

test('user data that nothing would run is refused, in the words of its image', () => {
  const image = 'img-01hzzzzzzz0123456789abcdef';
  const keys = '#cloud-config\nssh_authorized_keys:\n  - ssh-ed25519 AAAA\n';
  const run: readonly NewVm[] = [
    { ...GOOD, user_data: '#!/bin/sh\necho hi\n' },
    { ...GOOD, user_data: keys },
    { ...GOOD, image, user_data: '#!/bin/sh\n' },
    { ...GOOD, image, user_data: '#cloud-config\npackages: [vim]\n' },
    { ...GOOD, image, user_data: '\n#include https://example.org/x\n' },
    { ...GOOD, image, user_data: 'MIME-Version: 1.0\n' },
    { ...GOOD, image, user_data: '' },
  ];
  for (const input of run) assert.deepEqual(fieldsOf(input), [], String(input.user_data));
  const idle: readonly (readonly [NewVm, RegExp])[] = [
    [{ ...GOOD, user_data: 'echo hi' }, /the image tiny runs only scripts/],
    [{ ...GOOD, user_data: ' #!/bin/sh\n' }, /the image tiny runs only scripts/],
    [{ ...GOOD, user_data: '#cloud-config\npackages: [vim]\n' }, /the image tiny runs only scripts/],
    [{ ...GOOD, image, user_data: 'echo hi' }, /must begin with #! or #cloud-config/],
    [{ ...GOOD, user_data: '#!/bin/sh\r\necho hi\r\n' }, /Windows line endings/],
    [{ ...GOOD, user_data: '\ufeff#!/bin/sh\n' }, /byte order mark/],
    [{ ...GOOD, image, user_data: '\ufeff#cloud-config\n' }, /byte order mark/],
  ];
  for (const [input, words] of idle) {
    assert.deepEqual(fieldsOf(input), ['user_data'], String(input.user_data));
    assert.throws(() => checkNewVm(input), words);
  }
});

test('names: anything visible of 1 to 128 characters', () => {
  const good = ['a', 'x'.repeat(128), '😀'.repeat(128), 'a,b=c"d\'e', '-x', '../../etc', 'Ω web'];
  for (const name of good) assert.equal(vmNameProblem(name), undefined, name);
  const bad = [
    '',
    'x'.repeat(129),
    'a\nb',
    'a\u0000',
    '\u200b\u200d',
    '\u00a0',
    'a\u2028b',
    '\ud800',
    'a\u0085',
  ];
  for (const name of bad) assert.ok(vmNameProblem(name), JSON.stringify(name));
});

test('a host name is always one, whatever the name', () => {
  const hostname = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => assert.match(hostnameOf(name, ID), hostname)),
    { numRuns: cases(10_000) },
  );
  assert.equal(hostnameOf('Web Server №1', ID), 'web-server-no1');
  assert.equal(hostnameOf('Zoë,=-', ID), 'zoe');
  assert.equal(hostnameOf('日本', ID), ID);
  assert.equal(hostnameOf(`${'a'.repeat(62)}--b`, ID), 'a'.repeat(62));
});

test('SSH keys: the types of OpenSSH, one line, and what is inside is what it says', () => {
  for (const type of ['ssh-ed25519', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'sk-ssh-ed25519@openssh.com']) {
    assert.equal(sshKeyProblem(keyLine(type)), undefined, type);
  }
  assert.equal(sshKeyProblem(`  ${ED} and a long comment ü `), undefined);
  assert.equal(sshKeyProblem(`\ufeff${ED}\r\n`), undefined);
  assert.deepEqual(checkNewVm({ ...GOOD, ssh_keys: [`\ufeff${ED}\r\n`] }).sshKeys, [ED]);
  const bad = [
    '',
    'ssh-ed25519',
    'ssh-ed25519 !!!!',
    'ssh-ed25519 AAAA',
    keyLine('ssh-dss'),
    keyLine('ssh-rsa', 'ssh-ed25519'),
    keyLine('ssh-ed25519', 'ssh-ed25519', 8),
    `command="x" ${ED}`,
    `${ED}\nssh-ed25519 AAAA`,
    `${ED}\r`.replace('me', 'm\re'),
    `${ED}\u2028x`,
    `${ED}${'x'.repeat(17_000)}`,
    '-----BEGIN OPENSSH PRIVATE KEY-----',
  ];
  for (const line of bad) assert.ok(sshKeyProblem(line), line.slice(0, 60));
});

test('no text at all makes the check of a key throw', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void sshKeyProblem(text)));
  fc.assert(fc.property(fc.base64String({ minLength: 4 }), (text) => void sshKeyProblem(`ssh-rsa ${text}`)));
});
