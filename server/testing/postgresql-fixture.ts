/** A PostgreSQL of a test's own, and the users' driver. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import type { EngineDatabase } from '../databases/engine.ts';
import { PostgresqlEngine } from '../drivers/engine-postgresql/postgresql-engine.ts';
import { findPrograms } from '../drivers/engine-postgresql/postgresql-programs.ts';
import type { PostgresqlOptions } from '../drivers/engine-postgresql/site.ts';
import { HostProcesses } from '../drivers/host-process/host-processes.ts';
import { systemClock } from '../platform/clock.ts';
import { randomName } from '../platform/ids.ts';
import { noUsers, testUidBase } from './own-ground.ts';

/** For the `skip` of tests. */
export const noPostgresql = 'reason' in (await findPrograms(null)) ? NO_POSTGRESQL : false;

export interface PostgresqlFixture {
  readonly engine: PostgresqlEngine;
  readonly folder: string;
  readonly alarms: Map<string, string>;
  /** Set by tests. */
  readonly disk: { isLow: boolean };
  /** A new engine on the same folder, as a new start of Cloudlet makes one. */
  reopen(): PostgresqlEngine;
  close(): Promise<void>;
}

export function postgresqlFixture(
  firstPort = 20_000 + (process.pid % 10_000),
  more: Pick<PostgresqlOptions, 'external' | 'tls' | 'find'> = {},
): PostgresqlFixture {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-postgresql-'));
  const alarms = new Map<string, string>();
  const disk = { isLow: false };
  const hasUsers = noUsers === null;
  const make = () =>
    new PostgresqlEngine({
      folder,
      processes: new HostProcesses({
        clock: systemClock,
        group: 'cloudlet-postgresql-test',
        hasUsers,
        ground: folder,
      }),
      uidBase: hasUsers ? testUidBase() : null,
      alarms: {
        raise: (code, detail) => alarms.set(code, detail),
        clear: (code) => alarms.delete(code),
      },
      isDiskLow: () => disk.isLow,
      warn: () => {},
      firstPort,
      ...more,
    });
  const engines = [make()];
  return {
    engine: engines[0] as PostgresqlEngine,
    folder,
    alarms,
    disk,
    reopen: () => {
      const engine = make();
      engines.push(engine);
      return engine;
    },
    close: async () => {
      await Promise.all(engines.map((engine) => engine.close()));
      rmSync(folder, { recursive: true });
    },
  };
}

let lastNumber = 0;

export function newDatabase(more: Partial<EngineDatabase> = {}): EngineDatabase {
  const random = randomName(16);
  return {
    databaseId: `db-${random}`,
    number: ++lastNumber,
    database: `d_${random}`,
    username: `u_${random}`,
    sizeLimitBytes: 64 * 2 ** 20,
    limits: { connections: 5, statementMs: 10_000 },
    ...more,
  };
}

/** As a user's program connects. */
export async function connect(
  engine: PostgresqlEngine,
  database: EngineDatabase,
  password: string,
): Promise<Client> {
  const { uri } = await engine.endpoint(database);
  const client = new Client({ connectionString: uri(password) });
  // A session that is ended.
  client.on('error', () => {});
  await client.connect();
  return client;
}
