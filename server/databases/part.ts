/** Builds the database domain, for all engines. */

import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { SamplesStore } from '../metadata/samples-store.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { SweepGuard } from '../platform/background/sweep-guard.ts';
import type { Clock } from '../platform/clock.ts';
import type { Sealer } from '../platform/master-key.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { DiskShares } from '../resources/disk-shares.ts';
import type { Announce } from '../resources/row-change.ts';
import type { Tunnels } from '../resources/tunnels.ts';
import { Turns } from '../resources/turns.ts';
import { Creation } from './creation/creation.ts';
import { DatabaseDeleter, type KeptDumps } from './creation/database-deleter.ts';
import { Refill } from './creation/refill.ts';
import { DatabaseViews } from './database-view.ts';
import { Databases } from './databases.ts';
import { Dumps } from './dumps.ts';
import type { Engine, EngineLimits } from './engine.ts';
import type { EngineDescription } from './engine-description.ts';
import { Engines, moveDatabases, watchEngines } from './engines.ts';
import { ExportedDatabases } from './exported-databases.ts';
import { Imports } from './imports/imports.ts';
import { databaseStops } from './life/account-stops.ts';
import type { DataFaults } from './life/data-faults.ts';
import { DumpCopies } from './life/dump-copies.ts';
import type { DatabaseBilling, Egress } from './life/egress.ts';
import { type DatabaseEventType, Lifecycle } from './life/lifecycle.ts';
import { Metrics, meterDatabases } from './life/metrics.ts';
import { Logins, OwnedDatabases } from './life/owned-databases.ts';
import { PrivateDatabases } from './life/private-databases.ts';
import { DATABASE_SAMPLES, Sampler } from './life/sampler.ts';
import { DatabaseSupervisor } from './life/supervisor.ts';
import { type Continuous, ContinuousArchive } from './points/continuous-archive.ts';
import { DatabasePoints, type PointFiles } from './points/database-points.ts';
import { Moments } from './points/moments.ts';
import { databaseSource } from './points/point-dumps.ts';
import { Queries } from './queries.ts';
import { Plans } from './querying/plans.ts';
import { SavedQueries } from './querying/saved-queries.ts';
import { SavedSql } from './querying/saved-sql.ts';
import { databaseRoutes } from './routes.ts';
import { RowExports } from './rows/row-exports.ts';
import { Rows } from './rows/rows.ts';
import { DatabaseSecrets } from './secrets.ts';
import { DatabaseStore } from './store.ts';
import { databaseTunnelSocket } from './tunnel-routes.ts';

export interface DatabasesDeps {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly billing: DatabaseBilling;
  readonly egress: Egress;
  readonly engines: readonly Engine[];
  /** All engines, in the order of the list. */
  readonly abouts: readonly EngineDescription[];
  /** undefined: damage is not tracked. */
  readonly faults?: DataFaults | undefined;
  readonly kept: KeptDumps;
  readonly pointFiles: PointFiles;
  /** undefined: continuous protection is off. */
  readonly continuous?: Continuous | undefined;
  readonly limits: EngineLimits;
  /** Connections of the server of an account. */
  readonly serverConnections: number;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  /** Largest size_limit_mb. */
  readonly maxSizeMb: number;
  /** Retention of the last dump of a deleted database; 0: no dump is kept. */
  readonly keepMs: number;
  /** See DatabaseDeleterDeps. */
  readonly keptBytes: number;
  /** See FirstStartDeps. */
  readonly tellMs?: number | undefined;
  /** Timeout of a single dump for a recovery point, ms. */
  readonly pointDumpMs: number;
  /** Timeout between two pieces of a recovery point's dump, ms. */
  readonly pointSilenceMs: number;
  /** How long orphans are kept after they were found, ms. */
  readonly orphanGraceMs: number;
  readonly announce: Announce<DatabaseEventType>;
  /** Whether this node of a cluster has the databases; default: it has. */
  readonly isHere?: boolean | undefined;
  readonly sweepGuard: SweepGuard;
  /** undefined: accounts have no shares of the disk. */
  readonly diskShares?: Pick<DiskShares, 'count' | 'over' | 'assertMayGrow'> | undefined;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
}

/** Constructs the parts; nothing runs by itself. */
export function assembleDatabases({ engines: list, abouts, sealer, ...given }: DatabasesDeps) {
  const { metadata, clock, limits, serverConnections, maxSizeMb, announce } = given;
  const store = new DatabaseStore(metadata);
  const changes = new Changes({ metadata });
  const engines = new Engines(list, abouts);
  const secrets = new DatabaseSecrets({ sealer });
  const turns = new Turns({ find: (id: string) => store.find(id) });
  const owned = new OwnedDatabases(store);
  const lifecycle = new Lifecycle({ store, changes, engines, secrets, clock, limits, announce });
  const views = new DatabaseViews({ ...given, engines, lifecycle });
  const archive = new ContinuousArchive({ ...given, engines });
  const moments = new Moments({ ...given, archive, engines, lifecycle });
  const points = new DatabasePoints({ ...given, owned, moments });
  const parts = { ...given, store, changes, engines, secrets, turns, owned, lifecycle, views, points };
  const databases = new Databases(parts);
  const creation = new Creation(parts);
  const reconcileSoon = (databaseId: string) => supervisor.reconcileSoon(databaseId);
  const refill = new Refill(parts);
  const deleter = new DatabaseDeleter({ ...parts, refill, reconcileSoon });
  const supervisor = new DatabaseSupervisor({ ...parts, creation, deleter, refill });
  const accountStops = databaseStops({ ...parts, reconcileSoon });
  const samples = new SamplesStore(metadata, DATABASE_SAMPLES);
  const sampler = new Sampler({ ...parts, samples });
  const metrics = new Metrics({ ...parts, samples, sampler });
  const queries = new Queries(parts);
  const rows = new Rows({ ...parts, queries });
  const rowExports = new RowExports({ ...parts, rows });
  const imports = new Imports({ ...parts, rows, queries });
  const plans = new Plans({ ...parts, queries });
  const saved = new SavedSql(metadata);
  const savedQueries = new SavedQueries({ ...parts, saved });
  const copying = { ...parts, copies: countedCopies(given.diskShares) };
  const dumps = new Dumps(copying);
  const routes = {
    databases,
    creation,
    deleter,
    points,
    engines,
    limits,
    serverConnections,
    maxSizeMb,
    queries,
    rows,
    rowExports,
    imports,
    plans,
    savedQueries,
    dumps,
    metrics,
  };
  const logins = new Logins({ store, lifecycle, engines });
  const pointSource = databaseSource(parts);
  return {
    store,
    owned,
    changes,
    engines,
    views,
    logins,
    lifecycle,
    turns,
    archive,
    supervisor,
    accountStops,
    sampler,
    kept: given.kept,
    refill,
    pointSource,
    resources: creation.resources,
    exported: new ExportedDatabases({ ...copying, saved }),
    routes,
  };
}

function countedCopies(shares: DatabasesDeps['diskShares']): DumpCopies {
  const copies = new DumpCopies(shares);
  shares?.count(() => copies.heldBytes());
  return copies;
}

const CHECK_MS = 15_000;
const SWEEP_MS = 60_000;
const MOVE_MS = 60_000;
const SAMPLE_MS = 5000;
const FLUSH_MS = 5000;
const PRIVATE_CHECK_MS = 2000;

/**
 * Builds databases with its jobs, and frees the names of creations interrupted by the end of the
 * last run.
 */
export async function databasesPart(
  deps: DatabasesDeps & {
    readonly alarms: Alarms;
    readonly faults: DataFaults;
    readonly tunnels: Tunnels;
    readonly isHere: boolean;
  },
) {
  const { alarms, faults, egress } = deps;
  const parts = assembleDatabases(deps);
  const { engines, store, supervisor, sampler, turns, archive } = parts;
  deps.diskShares?.count(() => store.heldBytes());
  if (deps.isHere) await supervisor.recover();
  const privately = new PrivateDatabases(parts);
  const move = () => moveDatabases(parts);
  const every = (name: string, everyMs: number, run: () => Promise<unknown>): Job => {
    return { name, everyMs, per: 'host', run };
  };
  return {
    ...parts,
    egress,
    privately,
    routes: databaseRoutes(parts.routes),
    sockets: [databaseTunnelSocket({ ...deps, ...parts })],
    gauges: (meters: Meters) => meterDatabases(meters, sampler),
    jobs: [
      every('move databases to servers of their accounts', MOVE_MS, move),
      every('supervise databases', CHECK_MS, () => supervisor.check()),
      every('end private connections to closed databases', PRIVATE_CHECK_MS, () => privately.check()),
      every('store egress of databases', FLUSH_MS, () => egress.flush()),
      every('measure databases', SAMPLE_MS, () => sampler.tick()),
      every('check database engines', CHECK_MS, () =>
        watchEngines({ engines, alarms, counts: () => store.counts() }),
      ),
      every('check for missing databases', SWEEP_MS, () => faults.check(parts)),
      every('sweep databases', SWEEP_MS, () => supervisor.sweepOrphans()),
      ...(deps.continuous === undefined
        ? []
        : [every('archive the logs of databases', deps.continuous.everyMs, () => archive.tick())]),
    ],
    start: () => {
      void supervisor.check();
      // Databases show at once that their engine is unavailable.
      void engines.readiness().catch(() => {});
      void move().catch(() => {});
    },
    /** Ends loads and copies in progress, then closes the engines. */
    close: async () => {
      await turns.close();
      await archive.close();
      for (const engine of engines.all()) await engine.close();
    },
    flush: () => egress.flush(),
  };
}
