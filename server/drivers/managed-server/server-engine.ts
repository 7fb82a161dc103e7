/** What engines have in common that keep their databases on one server, ours or the operator's. */
import { isIPv6 } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Dump,
  DumpHow,
  Endpoint,
  EngineDatabase,
  Query,
  QueryResult,
  Readiness,
  Table,
} from '../../databases/engine.ts';
import { AppError } from '../../platform/errors.ts';
import type { HostProcesses } from '../host-process/host-processes.ts';
import type { AccountPlace } from './account-servers.ts';
import type { ClientPrograms } from './client-programs.ts';
import type { DataTemplate } from './data-template.ts';
import type { EngineServer } from './engine-server.ts';
import type { ManagedServerDeps } from './managed-server.ts';
import type { ServerTls } from './server-tls.ts';
import type { ServerAddress } from './server-url.ts';
import type { NoPrograms } from './unpacked-programs.ts';

export interface ServerEngineParts<Admin> {
  readonly site: {
    readonly server: EngineServer;
    readonly links: { asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> };
    readiness(): Promise<Readiness>;
  };
  readonly queries: {
    run(database: EngineDatabase, query: Query): Promise<QueryResult>;
    tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]>;
  };
  readonly dumps: {
    dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump>;
    load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void>;
  };
  /** Who looks at the server all the time; null: whoever has the engine does. */
  readonly watchdog: { takeActive(): readonly string[] } | null;
  readonly logs: { read(database: string, maxBytes: number): string };
  /** Names of all databases there, those of others too. */
  readonly databases: (admin: Admin) => Promise<readonly string[]>;
}

export class ServerEngine<Admin> {
  readonly #parts: ServerEngineParts<Admin>;
  readonly #server: EngineServer;
  /** Ids of databases, as Cloudlet calls them, by their names there. */
  readonly #ids = new Map<string, string>();
  readonly dumpFormats: readonly string[];

  constructor(dumpFormats: readonly string[], parts: ServerEngineParts<Admin>) {
    this.#parts = parts;
    this.#server = parts.site.server;
    this.dumpFormats = dumpFormats;
  }

  /** The server's, for tests; null: it does not run. */
  get pid(): number | null {
    return this.#server.pid;
  }

  readiness(): Promise<Readiness> {
    return this.#parts.site.readiness();
  }

  prepare(): Promise<void> {
    return this.#server.up();
  }

  /** The server that there was, without anybody waiting for it. */
  wake(): void {
    if (this.#server.isMade) void this.#server.up().catch(() => {});
  }

  takeActive(): readonly string[] {
    return (this.#parts.watchdog?.takeActive() ?? []).flatMap((name) => this.#ids.get(name) ?? []);
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    await this.#server.up();
    return this.#parts.queries.run(database, query);
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]> {
    await this.#server.up();
    return this.#parts.queries.tables(database, signal);
  }

  async dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump> {
    await this.#server.up();
    return this.#parts.dumps.dump(database, format, how);
  }

  async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    await this.#server.up();
    await this.#parts.dumps.load(database, dump, signal);
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    const { stream } = await this.dump(from, this.dumpFormats[0] ?? '', { signal });
    await this.load(to, stream, signal);
  }

  async log({ database }: EngineDatabase, maxBytes: number): Promise<string> {
    return this.#parts.logs.read(database, maxBytes);
  }

  async list(): Promise<readonly string[]> {
    if (!this.#server.isMade) return [];
    const all = await this.asAdmin(this.#parts.databases);
    return all.filter((name) => name.startsWith('d_'));
  }

  /** With a server that is up. */
  protected async asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    await this.#server.up();
    return this.#parts.site.links.asAdmin(work);
  }

  /** Notes what Cloudlet calls the database, for takeActive(). */
  protected note({ database, databaseId }: EngineDatabase): void {
    this.#ids.set(database, databaseId);
  }

  protected forget(name: string): void {
    this.#ids.delete(name);
  }
}

export interface ManagedEngineOptions {
  /** Ours, for all that is kept of it. */
  readonly folder: string;
  readonly processes: HostProcesses;
  /** First of its numbers of users of its own; null: it runs as ours. */
  readonly uidBase: number | null;
  /** Whose server it is; null: that of all accounts together, as earlier versions had it. */
  readonly account?: OwnServer | null;
  readonly alarms: ManagedServerDeps['alarms'];
  /** Less is free than must stay so. */
  readonly isDiskLow: () => boolean;
  readonly warn: (text: string) => void;
  /** The operator's own server; null: one of ours is looked after. */
  readonly external?: ServerAddress | null;
  /** Null: databases are reached on loopback alone, without TLS. */
  readonly tls?: ServerTls | null;
  /** The server's port when it is first made; where it is taken, the next that is free. */
  readonly firstPort: number;
}

/** What the server of one account has of its own, and what it shares. */
export interface OwnServer extends Pick<AccountPlace, 'port' | 'onEnd'> {
  /** Its user; null: ours. */
  readonly uid: number | null;
  readonly accountId: number;
  readonly template: DataTemplate;
  readonly clients: ClientPrograms;
}

type Found = { readonly version: string } | NoPrograms;

/** By the programs that were found, what these cannot do, and why the last start of the server failed. */
export function readinessOf(
  found: Found,
  problem: AppError | null,
  missing: NoPrograms | null = null,
): Readiness {
  const source = 'managed';
  if ('reason' in found) return { available: false, version: null, source, ...found };
  const reason = problem?.message ?? missing?.reason ?? null;
  const fix = problem === null ? (missing?.fix ?? null) : (problem.hint ?? null);
  return { available: problem === null, version: found.version, source, reason, fix };
}

/** Throws `engine_unavailable` when there are none. */
export function programsOrThrow<P extends { readonly version: string }>(
  title: string,
  found: P | NoPrograms,
): P {
  if ('version' in found) return found;
  throw new AppError('engine_unavailable', `${title} is not available on this host: ${found.reason}`, {
    hint: found.fix,
  });
}

/**
 * Servers behind doors take the first free port from here on: far from the doors, which begin at
 * `firstPort`.
 */
export function innerPort(firstPort: number): number {
  return firstPort > 2 * DOORS ? firstPort - DOORS : firstPort + DOORS;
}

/** Where users connect. */
export function endpointOf(port: number | null, tls: ServerTls | null): Omit<Endpoint, 'uri'> {
  return {
    host: tls?.host ?? '127.0.0.1',
    port: port ?? 0,
    tls: tls?.isRequired ?? false,
    ca: tls?.ca ?? null,
  };
}

/** `db.example:5432`. */
export function hostAndPort({ host, port }: Pick<Endpoint, 'host' | 'port'>): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** So many accounts have theirs before the two meet. */
const DOORS = 5000;
const FIRST_ANSWER_MS = 2000;

/** What is said of a server of the operator's. */
export interface ExternalSaid {
  readonly version: string | null;
  readonly limits: readonly string[];
}

/** What it cannot is said also while it is there. */
export async function externalReadiness(
  server: EngineServer,
  said: () => Promise<ExternalSaid>,
): Promise<Readiness> {
  // Whoever asks first waits a little for the first answer.
  if (!server.isUp && server.problem === null)
    await Promise.race([server.up().catch(() => {}), sleep(FIRST_ANSWER_MS, null, { ref: false })]);
  const { version, limits } = await said();
  const { problem, isUp } = server;
  const reason =
    problem?.message ?? (limits.length === 0 ? null : `A server of the operator's own: ${limits.join('; ')}`);
  return { available: isUp, version, source: 'external', reason, fix: problem?.hint ?? null };
}

export function timedOut(cause: Error): AppError {
  return new AppError('query_timeout', 'The statement ran for too long and was stopped', {
    hint: 'make it smaller, or run it with your own driver',
    cause,
  });
}

export function connectionEnded(title: string, cause: Error): AppError {
  return new AppError('engine_unavailable', `${title} ended the connection`, {
    hint: 'try again',
    retryAfterSeconds: 1,
    cause,
  });
}

export function diskFull(cause: Error): AppError {
  return new AppError('host_disk_full', 'The disk of the database server is full', { cause });
}
