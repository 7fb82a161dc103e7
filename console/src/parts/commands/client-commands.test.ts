import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandOfCall, commandOfPage } from './client-commands.ts';

test('each page has the command that shows the same', () => {
  const cases = [
    ['/', undefined, 'cloudlet whoami'],
    ['/storage', undefined, 'cloudlet ls'],
    ['/storage/photos', undefined, 'cloudlet ls s3://photos/'],
    ['/storage/photos', "it's/2026 a/", `cloudlet ls 's3://photos/it'\\''s/2026 a/'`],
    ['/storage/s3', undefined, 'cloudlet key ls'],
    ['/machines/vm-1', undefined, 'cloudlet vm show vm-1'],
    ['/machines/new', undefined, undefined],
    ['/databases/db%20x%3Brm', undefined, `cloudlet db show 'db x;rm'`],
    ['/webhooks', undefined, 'cloudlet webhook ls'],
    ['/sign-in', undefined, undefined],
  ] as const;
  for (const [path, prefix, command] of cases) assert.equal(commandOfPage(path, prefix), command, path);
});

test('each call has a command, and nothing of it is more than a word of the shell', () => {
  const post = { method: 'POST', path: '/api/vms', body: 'json', query: false } as const;
  const stop = { method: 'POST', path: '/api/vms/{vm_id}/stop', body: null, query: true } as const;
  const body = { name: "it's; rm -rf ~" };
  assert.equal(commandOfCall('createBucket', post, [{ name: 'photos' }]), 'cloudlet mb photos');
  const versioned = commandOfCall('createBucket', post, [{ name: 'photos', versioning: true }]);
  assert.equal(versioned, `cloudlet api createBucket -d '{"name":"photos","versioning":true}'`);
  assert.equal(
    commandOfCall('createVm', post, [body]),
    `cloudlet api createVm -d '{"name":"it'\\''s; rm -rf ~"}'`,
  );
  assert.equal(commandOfCall('stopVm', stop, ['vm-1', {}]), 'cloudlet api stopVm vm-1');
  const forced = commandOfCall('stopVm', stop, ['vm-1', { force: true }]);
  assert.equal(forced, `cloudlet api POST '/api/vms/vm-1/stop?force=true'`);
  assert.equal(commandOfCall('uploadObject', { ...post, body: 'form' }, ['photos', {}]), undefined);
});
