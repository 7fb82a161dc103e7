/** Database services on a real metadata database, with a scripted engine. For tests. */
import { join } from 'node:path';
import { pino } from 'pino';
import { openBilling } from '../billing/part.ts';
import type { Call } from '../calls/principal.ts';
import { BUILT_IN } from '../cloud/catalog.ts';
import type { KeptDumps } from '../databases/creation/database-deleter.ts';
import type { Engine } from '../databases/engine.ts';
import { Egress } from '../databases/life/egress.ts';
import type { DatabaseTurns } from '../databases/life/states.ts';
import { assembleDatabases } from '../databases/part.ts';
import { DatabaseStore } from '../databases/store.ts';
import { ABOUT_ENGINES } from '../drivers/engines/all-engines.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { AGELESS } from '../metadata/ages.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { SweepGuard } from '../platform/background/sweep-guard.ts';
import { ALONE } from '../platform/membership.ts';
import type { DiskShares } from '../resources/disk-shares.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import { by, newPrincipal, openAccountFixture } from './account-fixture.ts';
import { EngineDisk, ScriptedEngine } from './scripted-engine.ts';

export const TEST_DATABASE_GRACE_MS = 600_000;
export const TEST_KEEP_MS = 72 * 3_600_000;

export interface DatabaseFixtureOptions {
  /** Wraps the stores, so that they can fail. */
  readonly wrapMetadata?: (metadata: Metadata) => Metadata;
  readonly wrapEngine?: (engine: Engine) => Engine;
  readonly wrapKept?: (kept: KeptDumps) => KeptDumps;
  readonly assertSpace?: (bytes: number) => void;
  readonly keepMs?: number;
  readonly keptBytes?: number;
  readonly tellMs?: number;
  readonly diskShares?: Pick<DiskShares, 'count' | 'over' | 'assertMayGrow'>;
}

export type DatabaseFixture = Awaited<ReturnType<typeof openDatabaseFixture>>;
export type DatabaseCloud = Awaited<ReturnType<DatabaseFixture['open']>>;

/** The fixture itself remains; `open` starts Cloudlet in it. */
export async function openDatabaseFixture() {
  const fixture = await openAccountFixture();
  const { metadata, bus, clock, accounts, sealer } = fixture;
  const disk = new EngineDisk();
  const store = new DatabaseStore(metadata);
  const log = pino({ level: 'silent' });
  const base = { metadata, bus, ages: AGELESS, alarms: new Alarms(clock), membership: ALONE };
  const { databaseCharges: billing } = await openBilling({ builtIn: BUILT_IN, clock, log, base });
  const directory = join(fixture.directory, 'kept');
  const opened: DatabaseTurns[] = [];
  return {
    metadata,
    clock,
    disk,
    store,
    directory,
    async open(options: DatabaseFixtureOptions = {}) {
      const { assertSpace = () => {}, keepMs = TEST_KEEP_MS, keptBytes = 2 ** 30 } = options;
      const scripted = new ScriptedEngine({ disk });
      const engine = options.wrapEngine?.(scripted) ?? scripted;
      const files = await KeptDumpFiles.open({ directory, assertSpace });
      const reports: string[] = [];
      const announced: string[] = [];
      const egress = new Egress({ changes: new Changes({ metadata }), billing });
      const parts = assembleDatabases({
        pointFiles: {
          points: async () => [],
          find: async () => undefined,
          during: () => Promise.reject(),
        },
        metadata: options.wrapMetadata?.(metadata) ?? metadata,
        clock,
        sealer,
        billing,
        egress,
        assertSpace,
        keepMs,
        keptBytes,
        tellMs: options.tellMs,
        diskShares: options.diskShares,
        engines: [engine],
        abouts: ABOUT_ENGINES,
        kept: options.wrapKept?.(files) ?? files,
        limits: { connections: 10, statementMs: 1000 },
        serverConnections: 100,
        maxSizeMb: 1024,
        pointDumpMs: 60_000,
        pointSilenceMs: 60_000,
        sweepGuard: new SweepGuard({ alarms: new Alarms(clock), isOurs: async () => true }),
        announce: (event) => {
          announced.push(event.type);
          return eventStatements(event);
        },
        orphanGraceMs: TEST_DATABASE_GRACE_MS,
        onError: (id, what, error) => void reports.push(`${id} ${what}: ${error}`),
      });
      opened.push(parts.turns);
      return { ...parts, ...parts.routes, scripted, reports, announced, egress };
    },
    /** Calls of a new account. */
    newCall: async (username: string): Promise<Call> => by(await newPrincipal(accounts, username)),
    /** The maximum number of databases of the account. */
    async limit({ principal }: Call, databases: number): Promise<void> {
      const sql = 'UPDATE billing_accounts SET quotas = ? WHERE account_id = ?';
      await metadata.commit([{ sql, params: [JSON.stringify({ databases }), principal.accountId] }]);
    },
    /** Databases that count towards the quota. */
    async counted({ principal }: Call): Promise<number> {
      const sql = 'SELECT database_count AS count FROM billing_accounts WHERE account_id = ?';
      return (await metadata.get<{ count: number }>(sql, principal.accountId))?.count ?? -1;
    },
    /** Also waits for deletions that write their last dumps into the directory. */
    close: async () => {
      await Promise.all(opened.map((turns) => turns.close()));
      await fixture.close();
    },
  };
}

/** Closes the fixture afterwards. */
export async function withDatabaseFixture(work: (fixture: DatabaseFixture) => Promise<void>): Promise<void> {
  const fixture = await openDatabaseFixture();
  try {
    await work(fixture);
  } finally {
    await fixture.close();
  }
}
