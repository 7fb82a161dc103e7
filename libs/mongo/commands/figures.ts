/** Statistics of a database and its collections: sizes and usage counters. */
import { hostname } from 'node:os';
import { type Document, Long } from 'bson';
import type { Clock } from '../clock.ts';
import { CommandError } from '../command-error.ts';
import { SERVER_VERSION } from '../server-version.ts';
import type { Collection } from '../storage/documents-store.ts';
import type { Index } from '../storage/index-values.ts';
import { isDocument } from '../values/field-paths.ts';
import { plainNumber } from '../values/numbers.ts';
import { type Command, type CommandScope, collectionName, namespaceOf } from './command-scope.ts';
import { assertNoView, viewOf } from './views.ts';

/** The `serverInfo` of `explain`. */
export function serverInfo(): Document {
  return { host: hostname(), port: 27017, version: SERVER_VERSION, gitVersion: 'cloudlet' };
}

function collStats(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  return { ns: namespaceOf(name, scope), ...figuresOf(name, command, scope), ok: 1 };
}

/** Sizes in units of `scale` bytes. */
function figuresOf(name: string, command: Document, scope: CommandScope): Document {
  const collection = scope.store.collection(name);
  const scale = plainNumber(command.scale ?? 1);
  const { documents: count, bytes } = collection ?? { documents: 0, bytes: 0 };
  const sizes = (collection?.indexes ?? []).map(
    (index) => [index.name, scope.store.indexBytes(collection as Collection, index) / scale] as const,
  );
  const totalIndexSize = sizes.reduce((sum, [, size]) => sum + size, 0);
  return {
    count,
    size: bytes / scale,
    ...(count > 0 ? { avgObjSize: Math.round(bytes / count) } : {}),
    storageSize: bytes / scale,
    freeStorageSize: 0,
    totalSize: bytes / scale + totalIndexSize,
    nindexes: sizes.length,
    totalIndexSize,
    indexSizes: Object.fromEntries(sizes),
    capped: collection?.options.capped === true,
    ...(collection?.options.capped
      ? { max: collection.options.max ?? -1, maxSize: collection.options.size / scale }
      : {}),
    scaleFactor: scale,
  };
}

function dbStats(command: Document, scope: CommandScope): Document {
  const scale = plainNumber(command.scale ?? 1);
  const all = scope.store.collections();
  const collections = all.filter(({ options }) => viewOf(options) === null);
  const total = (of: (collection: Collection) => number) =>
    collections.reduce((sum, each) => sum + of(each), 0);
  const [objects, bytes] = [total(({ documents }) => documents), total((each) => each.bytes)];
  const indexSize = total((each) =>
    each.indexes.reduce((sum, index) => sum + scope.store.indexBytes(each, index), 0),
  );
  const file = scope.store.fileBytes();
  return {
    db: scope.databaseName,
    collections: collections.length,
    views: all.length - collections.length,
    objects,
    avgObjSize: objects === 0 ? 0 : bytes / objects,
    dataSize: bytes / scale,
    storageSize: (file.total - file.free) / scale,
    indexes: total(({ indexes }) => indexes.length),
    indexSize: indexSize / scale,
    totalSize: file.total / scale,
    scaleFactor: scale,
    ok: 1,
  };
}

/** Names of counted commands in `serverStatus`; all others count as `command`. */
const COUNTED: Readonly<Record<string, string>> = {
  insert: 'insert',
  find: 'query',
  update: 'update',
  delete: 'delete',
  getMore: 'getmore',
};

/** Maximum indexes with usage counters; above it, counting starts over. */
const MAX_COUNTED = 20_000;

/** Counts commands and index uses of one database since its process started. */
export class OperationCounters {
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #since: Date;
  readonly #uses = new Map<string, { ops: number; since: Date }>();
  readonly #counts = new Map(
    [...Object.values(COUNTED), 'command'].map((kind): [string, number] => [kind, 0]),
  );

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#since = new Date(clock.now());
  }

  /** Begins to count the uses of a new index. */
  begin({ uuid }: Collection, name: string): void {
    if (this.#uses.size >= MAX_COUNTED) this.#uses.clear();
    this.#uses.set(`${uuid}/${name}`, { ops: 0, since: new Date(this.#clock.now()) });
  }

  use({ uuid }: Collection, { name }: Index): void {
    const key = `${uuid}/${name}`;
    const there = this.#uses.get(key);
    if (there !== undefined) there.ops++;
    else if (this.#uses.size < MAX_COUNTED) this.#uses.set(key, { ops: 1, since: this.#since });
  }

  usesOf({ uuid }: Collection, { name }: Index): Document {
    const { ops, since } = this.#uses.get(`${uuid}/${name}`) ?? { ops: 0, since: this.#since };
    return { ops: Long.fromNumber(ops), since };
  }

  count(command: string): void {
    const kind = Object.hasOwn(COUNTED, command) ? (COUNTED[command] as string) : 'command';
    this.#counts.set(kind, (this.#counts.get(kind) as number) + 1);
  }

  /** The reply to `serverStatus`, limited to this database. */
  status(now: number): Document {
    const uptimeMs = Math.max(0, now - this.#startedAt);
    return {
      host: hostname(),
      version: SERVER_VERSION,
      uptime: uptimeMs / 1000,
      uptimeMillis: Long.fromNumber(Math.floor(uptimeMs)),
      opcounters: Object.fromEntries([...this.#counts].map(([kind, n]) => [kind, Long.fromNumber(n)])),
      storageEngine: { name: 'sqlite', supportsCommittedReads: false, persistent: true },
      ok: 1,
    };
  }
}

/** An index as listed: `_id` is always unique, and shown without the option. */
export function listedSpec({ id, spec }: Index): Document {
  const { unique: _unique, ...ofIds } = spec;
  if (id === 0) return spec.clustered ? spec : ofIds;
  // Compass detects a geospatial index by it.
  const isSphere = Object.values(spec.key).includes('2dsphere');
  return isSphere ? { ...spec, '2dsphereIndexVersion': spec['2dsphereIndexVersion'] ?? 3 } : spec;
}

/** The documents of a stage about the collection itself; null: another stage. */
export function figureStage(
  stage: Document | undefined,
  name: string,
  scope: CommandScope,
): Document[] | null {
  if (!isDocument(stage)) return null;
  if ('$indexStats' in stage || '$collStats' in stage) assertNoView(name, scope);
  if ('$indexStats' in stage) return indexStats(name, scope);
  if (!('$collStats' in stage)) return null;
  const asked: Document = stage.$collStats;
  if (!isDocument(asked)) throw new CommandError('TypeMismatch', '$collStats must take a nested object');
  const { storageStats, count } = asked;
  if (scope.store.collection(name) === undefined)
    throw new CommandError('NamespaceNotFound', `Collection [${namespaceOf(name, scope)}] not found.`);
  const whole = { ns: namespaceOf(name, scope), host: hostname(), localTime: new Date(scope.clock.now()) };
  const figures = figuresOf(name, isDocument(storageStats) ? storageStats : {}, scope);
  return [
    {
      ...whole,
      ...(storageStats === undefined ? {} : { storageStats: figures }),
      ...(count === undefined ? {} : { count: figures.count }),
    },
  ];
}

function indexStats(name: string, scope: CommandScope): Document[] {
  const collection = scope.store.collection(name);
  return (collection?.indexes ?? []).map((index) => ({
    name: index.name,
    key: index.spec.key,
    host: hostname(),
    accesses: scope.counters.usesOf(collection as Collection, index),
    spec: listedSpec(index),
  }));
}

export const FIGURE_COMMANDS: Readonly<Record<string, Command>> = {
  collStats,
  collstats: collStats,
  dbStats,
  dbstats: dbStats,
  serverStatus: (_, { counters, clock }) => counters.status(clock.monotonic()),
};
