/** The promised connections are enforced, also in databases created before the setting. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { createConnection } from 'mysql2/promise';
import { Client as Driver } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const hasPrograms = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;

interface Session {
  end(): Promise<unknown>;
}

/** The connection of each engine's own driver, and the engine's code for one connection too many. */
const DRIVERS = {
  postgresql: {
    skip: hasPrograms('postgresql') ? false : NO_POSTGRESQL,
    tooMany: { code: '53300' },
    async connect(uri: string): Promise<Session> {
      const driver = new Driver(uri);
      driver.on('error', () => {});
      await driver.connect();
      return driver;
    },
  },
  mysql: {
    skip: hasPrograms('mariadb') ? false : NO_MARIADB,
    tooMany: { errno: 1226 },
    connect: async (uri: string): Promise<Session> => createConnection(uri),
  },
  mongodb: {
    skip: false,
    tooMany: { code: 18 },
    async connect(uri: string): Promise<Session> {
      const driver = new MongoClient(uri, { maxPoolSize: 1 });
      try {
        await driver.db().command({ ping: 1 });
      } catch (error) {
        await driver.close();
        throw error;
      }
      return { end: () => driver.close() };
    },
  },
} as const;

describe('connections of databases', () => {
  const env: Record<string, string> = { CLOUDLET_DATABASE_CONNECTIONS: '3' };
  let cloud: CloudProcess;
  let key: string | undefined;
  const ids = new Map<string, string>();
  before(async () => {
    cloud = await CloudProcess.start({ env });
    const user = await new Client(cloud.api).newUser();
    key = user.key;
    for (const [engine, { skip }] of Object.entries(DRIVERS)) {
      if (skip !== false) continue;
      const { status, body } = await user.call('/api/databases', { json: { name: engine, engine } });
      assert.equal(status, 201, JSON.stringify(body));
      ids.set(engine, body.database_id);
    }
    await cloud.crash();
    env.CLOUDLET_DATABASE_CONNECTIONS = '7';
    await cloud.start();
  });
  after(() => cloud.stop());

  for (const [engine, { skip, tooMany, connect }] of Object.entries(DRIVERS)) {
    test(`${engine}: a setting that was raised holds after a restart`, { skip }, async () => {
      const user = new Client(cloud.api, key);
      const engines = (await user.call('/api/database-engines')).body;
      const { limits } = engines.find((one: { engine: string }) => one.engine === engine);
      assert.equal(limits.connections, 7);
      assert.equal(limits.server_connections, engine === 'mongodb' ? null : 100);
      const { body } = await user.call(`/api/databases/${ids.get(engine)}/credentials`);
      const sessions: Session[] = [];
      const more = async () => {
        const session = await connect(body.connection.uri).catch(() => null);
        if (session !== null) sessions.push(session);
        return sessions.length === limits.connections;
      };
      // Within seconds of the start.
      await eventually('all connections', more);
      await assert.rejects(connect(body.connection.uri), tooMany);
      for (const session of sessions) await session.end();
    });
  }
});
