import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, isAppError } from '../../platform/errors.ts';
import { withDatabaseFixture } from '../../testing/database-fixture.ts';
import { PrivateDatabases } from './private-databases.ts';

test('only a database that is gone has no URI; one that is unknown for now is an error', () =>
  withDatabaseFixture(async (fixture) => {
    let isAway = false;
    const cloud = await fixture.open();
    const endpoint = cloud.scripted.endpoint.bind(cloud.scripted);
    cloud.scripted.endpoint = async (of) => {
      if (isAway) throw new AppError('engine_unavailable', 'its server is away');
      return endpoint(of);
    };
    const ann = await fixture.newCall('ann');
    const { database_id: id } = await cloud.creation.create(ann, { name: 'shop' });
    const { accountId } = ann.principal;
    const privately = new PrivateDatabases({ ...cloud, store: fixture.store });
    assert.match((await privately.uri(accountId, 'shop')) ?? '', /shop\.db\.internal/);
    assert.equal(await privately.uri(accountId, 'other'), null);
    isAway = true;
    await assert.rejects(privately.uri(accountId, 'shop'), (error) =>
      isAppError(error, 'engine_unavailable'),
    );
    const suspend = "UPDATE databases SET state = 'suspended' WHERE database_id = ?";
    await fixture.metadata.commit([{ sql: suspend, params: [id] }]);
    await assert.rejects(privately.uri(accountId, 'shop'), (error) =>
      isAppError(error, 'database_not_ready'),
    );
  }));
