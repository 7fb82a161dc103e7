import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from './config.ts';
import { databaseLimits, isContinuous } from './database-limits.ts';

test('the server of an account has at least the connections of one database', () => {
  const limitsOf = (server: string) =>
    databaseLimits(
      loadConfig({
        CLOUDLET_DATABASE_CONNECTIONS: '30',
        CLOUDLET_DATABASE_SERVER_CONNECTIONS: server,
        CLOUDLET_DATABASE_STATEMENT_SECONDS: '7',
      }),
    );
  assert.deepEqual(limitsOf('20'), {
    limits: { connections: 30, statementMs: 7000 },
    serverConnections: 30,
  });
  assert.equal(limitsOf('40').serverConnections, 40);
});

test('logs are archived when points have their own place, unless that is off', () => {
  const isOn = (target: string, seconds: string) =>
    isContinuous(loadConfig({ CLOUDLET_RECOVERY_TARGET: target, CLOUDLET_CONTINUOUS_SECONDS: seconds }));
  assert.deepEqual(
    [isOn('/mnt/points', '10'), isOn('/mnt/points', '0'), isOn('', '10')],
    [true, false, false],
  );
});
