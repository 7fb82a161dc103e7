/** A MariaDB of a test's own, and the users' driver. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, createConnection } from 'mysql2/promise';
import { NO_MARIADB } from '../../scripts/installed.ts';
import type { EngineDatabase } from '../databases/engine.ts';
import { MysqlEngine } from '../drivers/engine-mysql/mysql-engine.ts';
import { findPrograms } from '../drivers/engine-mysql/mysql-programs.ts';
import { HostProcesses } from '../drivers/host-process/host-processes.ts';
import type { ManagedEngineOptions } from '../drivers/managed-server/managed-engine.ts';
import { systemClock } from '../platform/clock.ts';
import { noUsers, testUidBase } from './own-ground.ts';

/** For the `skip` of tests. */
export const noMysql = 'reason' in (await findPrograms(null)) ? NO_MARIADB : false;

export interface MysqlFixture {
  readonly engine: MysqlEngine;
  readonly folder: string;
  readonly alarms: Map<string, string>;
  /** Whether the disk is nearly full. */
  isDiskLow: boolean;
  /** A new engine on the same folder, as a new start of Cloudlet makes one. */
  reopen(): MysqlEngine;
  close(): Promise<void>;
}

export function mysqlFixture(
  firstPort = 31_000 + (process.pid % 1000),
  more: Pick<ManagedEngineOptions, 'external' | 'tls'> = {},
): MysqlFixture {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-mysql-'));
  const alarms = new Map<string, string>();
  const hasUsers = noUsers === null;
  const make = () =>
    new MysqlEngine({
      folder,
      processes: new HostProcesses({
        clock: systemClock,
        group: 'cloudlet-mysql-test',
        hasUsers,
        ground: folder,
      }),
      uidBase: hasUsers ? testUidBase() : null,
      alarms: {
        raise: (code, detail) => alarms.set(code, detail),
        clear: (code) => alarms.delete(code),
      },
      isDiskLow: () => fixture.isDiskLow,
      warn: () => {},
      firstPort,
      ...more,
    });
  const fixture = { isDiskLow: false };
  const engines = [make()];
  return Object.assign(fixture, {
    engine: engines[0] as MysqlEngine,
    folder,
    alarms,
    reopen: () => {
      const engine = make();
      engines.push(engine);
      return engine;
    },
    close: async () => {
      for (const engine of engines.reverse()) await engine.close();
      rmSync(folder, { recursive: true });
    },
  });
}

/** As a user's program connects. */
export async function connectMysql(
  engine: MysqlEngine,
  database: EngineDatabase,
  password: string,
): Promise<Connection> {
  const { uri } = await engine.endpoint(database);
  const connection = await createConnection(uri(password));
  // A session that is ended.
  connection.on('error', () => {});
  return connection;
}
