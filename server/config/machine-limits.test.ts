import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from './config.ts';
import { publishingRules } from './machine-limits.ts';

test('no machine gets a port of the cloud itself, and half of the connections are for the cloud', () => {
  const { reserved, range, maxConnections } = publishingRules(
    loadConfig({
      CLOUDLET_PORT: '62150',
      CLOUDLET_DATA_PORT: '62151',
      CLOUDLET_PUBLISHED_PORTS: '62100-62999',
      CLOUDLET_MAX_CONNECTIONS: '101',
    }),
  );
  assert.deepEqual([...reserved], [62150, 62151]);
  assert.deepEqual(range, { first: 62100, last: 62999 });
  assert.equal(maxConnections, 51);
  assert.equal(publishingRules(loadConfig({ CLOUDLET_PUBLISHED_PORTS: 'off' })).range, null);
});
