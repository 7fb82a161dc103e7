/** Puts the databases domain together, of whatever engines and stores it is given. */
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { SamplesStore } from '../metadata/samples-store.ts';
import type { Clock } from '../platform/clock.ts';
import type { Sealer } from '../platform/sealer.ts';
import { AccountStops } from './account-stops.ts';
import { Creation } from './creation.ts';
import { DatabaseAnswers } from './database-answer.ts';
import type { DatabaseBilling } from './database-billing.ts';
import type { Announce } from './database-events.ts';
import { DATABASE_SAMPLES } from './database-samples.ts';
import { DatabaseSecrets } from './database-secrets.ts';
import { Databases } from './databases.ts';
import { Dumps } from './dumps.ts';
import type { Engine, EngineLimits } from './engine.ts';
import { Engines } from './engines.ts';
import type { KeptDumps } from './kept-dumps.ts';
import { Lifecycle } from './lifecycle.ts';
import { Logins } from './logins.ts';
import { Metrics } from './metrics.ts';
import { OwnedDatabases } from './owned-databases.ts';
import { databaseSource } from './point-dumps.ts';
import { Queries } from './queries.ts';
import { Refill } from './refill.ts';
import { Removal } from './removal.ts';
import { Sampler } from './sampler.ts';
import { DatabaseStore } from './store.ts';
import { DatabaseSupervisor } from './supervisor.ts';
import { DatabaseTurns } from './turns.ts';

export interface DatabasesParts {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly billing: DatabaseBilling;
  readonly engines: readonly Engine[];
  readonly kept: KeptDumps;
  readonly limits: EngineLimits;
  /** Throws `out_of_space` when so many bytes more must not be stored. */
  readonly assertRoom: (bytes: number) => void;
  /** Largest size_limit_mb. */
  readonly maxSizeMb: number;
  /** How long the last dump of a deleted database is kept; 0: there is none. */
  readonly keepMs: number;
  /** How long the dump of one may take for a recovery point, ms. */
  readonly pointDumpMs: number;
  /** How long it may give nothing meanwhile, ms. */
  readonly pointSilenceMs: number;
  /** How long what no row knows is left alone, ms. */
  readonly orphanGraceMs: number;
  readonly announce: Announce;
  readonly report: (databaseId: string, what: string, error: unknown) => void;
}

/** Makes the parts; nothing runs by itself. */
export function assembleDatabases({ engines: list, sealer, ...given }: DatabasesParts) {
  const { metadata, clock, billing, limits, maxSizeMb, announce } = given;
  const store = new DatabaseStore(metadata);
  const changes = new Changes({ metadata });
  const engines = new Engines(list);
  const secrets = new DatabaseSecrets({ sealer });
  const turns = new DatabaseTurns();
  const owned = new OwnedDatabases({ store, clock });
  const lifecycle = new Lifecycle({ store, changes, engines, secrets, clock, limits, announce });
  const answers = new DatabaseAnswers({ engines, billing, inEngine: (row) => lifecycle.inEngine(row) });
  const parts = { ...given, store, changes, engines, secrets, turns, owned, lifecycle, answers };
  const databases = new Databases(parts);
  const creation = new Creation(parts);
  const settleSoon = (databaseId: string) => supervisor.settleSoon(databaseId);
  const refill = new Refill(parts);
  const removal = new Removal({ ...parts, refill, settleSoon });
  const supervisor = new DatabaseSupervisor({ ...parts, creation, removal, refill });
  const accountStops = new AccountStops({ ...parts, settleSoon });
  const samples = new SamplesStore(metadata, DATABASE_SAMPLES);
  const sampler = new Sampler({ ...parts, samples });
  const metrics = new Metrics({ ...parts, samples, sampler });
  const queries = new Queries(parts);
  const dumps = new Dumps(parts);
  const routes = { databases, creation, removal, engines, limits, maxSizeMb, queries, dumps, metrics };
  const logins = new Logins({ store, lifecycle, engine: 'sqlite' });
  const pointSource = databaseSource(parts);
  const { kept } = given;
  return {
    store,
    engines,
    logins,
    lifecycle,
    turns,
    supervisor,
    accountStops,
    sampler,
    kept,
    pointSource,
    routes,
  };
}
