import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ABOUT_ENGINES } from '../drivers/engines/all-engines.ts';
import { AppError } from '../platform/errors.ts';
import { DatabaseViews, type DatabaseViewsDeps } from './database-view.ts';
import type { Engine } from './engine.ts';
import { Engines } from './engines.ts';
import type { DatabaseRow } from './store.ts';

/** Like the engine of servers before it has a server for the account. */
const SERVERLESS = {
  name: 'postgresql',
  trouble: () => null,
  endpoint: async () => {
    throw new AppError('engine_unavailable', 'The server of the database d_1 is missing');
  },
} as unknown as Engine;

const views = new DatabaseViews({
  engines: new Engines([SERVERLESS], ABOUT_ENGINES),
  billing: { pricePerHour: () => '0' },
  lifecycle: { inEngine: () => ({}) },
} as unknown as DatabaseViewsDeps);

const rowIn = (state: string) =>
  ({
    engine: 'postgresql',
    state,
    reason_code: state === 'error' ? 'restoring' : null,
    reason_message: state === 'error' ? 'Waiting for its turn' : null,
    plan: 'standard',
    created_at: 0,
    deletes_at: null,
    size_limit_bytes: 2 ** 20,
  }) as unknown as DatabaseRow;

test('a database of a recovery point is shown before it has a server, without an address', async () => {
  const { state, state_reason: reason, connection } = await views.present(rowIn('error'));
  assert.deepEqual([state, reason?.code, connection.uri, connection.port], ['error', 'restoring', '', 0]);
});

test('an open database whose server is missing is not shown as one without an address', async () => {
  await assert.rejects(views.present(rowIn('ready')), { code: 'engine_unavailable' });
});

test('a database whose engine is away is in error with the reason, and ready when it is back', async () => {
  let available = true;
  const readiness = async () => ({
    available,
    version: null,
    source: 'external',
    fix: null,
    reason: available ? null : 'the server of the operator does not answer',
  });
  const endpoint = async () => ({ host: '', port: 0, tls: false, ca: null, uri: () => '' });
  const engines = new Engines([{ name: 'mysql', readiness, endpoint } as unknown as Engine], ABOUT_ENGINES);
  const deps = {
    engines,
    billing: { pricePerHour: () => '0' },
    lifecycle: { inEngine: () => ({}) },
  } as unknown as DatabaseViewsDeps;
  const shown = async () => {
    await engines.readiness();
    const { state, state_reason: reason } = await new DatabaseViews(deps).present({
      ...rowIn('ready'),
      engine: 'mysql',
    });
    return [state, reason?.code, reason?.message];
  };
  assert.deepEqual(await shown(), ['ready', undefined, undefined]);
  available = false;
  const [state, code, message] = await shown();
  assert.deepEqual([state, code], ['error', 'engine_unavailable']);
  assert.match(
    message ?? '',
    /mysql is not available on this host: the server of the operator does not answer/,
  );
  available = true;
  assert.deepEqual(await shown(), ['ready', undefined, undefined]);
});
