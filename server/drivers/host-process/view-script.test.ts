import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AT } from './view-script.ts';

test('the folder of a process is seen where no host has programs or data that it may be shown', () => {
  for (const path of ['/bin', '/data', '/home', '/mnt', '/nix', '/opt', '/root', '/srv', '/usr', '/var'])
    assert.ok(AT !== path && !AT.startsWith(`${path}/`), path);
});
