/** A MongoDB engine in its own folder, for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { pino } from 'pino';
import type { EngineDatabase } from '../databases/engine.ts';
import { ChildSlots } from '../drivers/engine-children/child-slots.ts';
import { MongodbEngine, type MongodbEngineOptions } from '../drivers/engines/mongodb/mongodb-engine.ts';
import { systemClock } from '../platform/clock.ts';
import { newDatabase } from './new-database.ts';
import { noUsers, testUidBase } from './own-ground.ts';

export interface MongodbFixture {
  readonly engine: MongodbEngine;
  readonly folder: string;
  /** Active alarms. */
  readonly alarms: Map<string, string>;
  /** An existing database, and its address. */
  make(about?: Partial<EngineDatabase>): Promise<{ database: EngineDatabase; uri: string }>;
  /** A connected driver; closed with the fixture. */
  connect(uri: string): Promise<MongoClient>;
  close(): Promise<void>;
}

const FIRST_PORT = 27_517;

export function openMongodb(options: Partial<MongodbEngineOptions> = {}): MongodbFixture {
  const data = mkdtempSync(join(tmpdir(), 'cloudlet-mongodb-'));
  const folder = options.folder ?? join(data, 'databases', 'mongodb');
  const alarms = new Map<string, string>();
  const engine = new MongodbEngine({
    clock: systemClock,
    log: pino({ level: 'silent' }),
    folder,
    ground: data,
    users: noUsers === null ? { first: testUidBase(), count: 100_000 } : null,
    slots: new ChildSlots(6),
    idleMs: 60_000,
    keepFreeBytes: () => 0,
    onFault: () => {},
    alarms: { raise: (code, detail) => alarms.set(code, detail), clear: (code) => alarms.delete(code) },
    firstPort: FIRST_PORT,
    ...options,
  });
  const clients: MongoClient[] = [];
  return {
    engine,
    folder,
    alarms,
    make: async (about) => {
      const database = newDatabase(about);
      await engine.provision(database, 'secret');
      return { database, uri: (await engine.endpoint(database)).uri('secret') };
    },
    connect: async (uri) => {
      const client = new MongoClient(
        uri,
        uri.includes('Timeout') ? {} : { serverSelectionTimeoutMS: 10_000 },
      );
      clients.push(client);
      return client.connect();
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close(true)));
      await engine.close();
      rmSync(data, { recursive: true, force: true });
    },
  };
}
