/** Dumps and loads of whole PostgreSQL databases. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dump, DumpHow, EngineDatabase } from '../../../../databases/engine.ts';
import type { LoadHow } from '../../../../databases/left-out.ts';
import { KeyedMutex } from '../../../../platform/concurrency.ts';
import { AppError } from '../../../../platform/errors.ts';
import { randomBase62, randomName } from '../../../../platform/ids.ts';
import type { ManagedEngineOptions } from '../../../managed-server/database-server.ts';
import type { Clients } from '../../../managed-server/programs/client-programs.ts';
import { DumpParts } from '../../../managed-server/programs/dump-parts.ts';
import {
  dumpOf,
  joinedDump,
  loadInto,
  removeLeftovers,
} from '../../../managed-server/programs/dump-streams.ts';
import { scramVerifier } from '../../../scram-keys.ts';
import type { PostgresqlLinks } from '../postgresql-links.ts';
import * as store from '../postgresql-store.ts';
import { freeName, grantToDumper, handOver } from '../test-databases-store.ts';
import { withoutTables } from './data-only.ts';
import { DumpFilter, DumpPrelude, type Lenient } from './dump-filters.ts';
import { type DumpText, textOf } from './dump-texts.ts';
import { RefusedStatements } from './refused-statements.ts';
import { factsOf } from './server-facts-store.ts';
import { TriedStatements } from './tried-statements.ts';

/** Settings by dump format. */
const FORMATS = {
  sql: { option: '--format=plain', contentType: 'application/sql', extension: 'sql' },
  custom: { option: '--format=custom', contentType: 'application/octet-stream', extension: 'dump' },
} as const;
export const DUMP_FORMATS: readonly string[] = Object.keys(FORMATS);
/** If a tenant holds a lock for longer, the dump fails with that reason. */
const LOCK_WAIT = '--lock-wait-timeout=30s';
/** Its output is rows as plain lines. */
const CLIENT = ['--no-psqlrc', '--quiet', '--no-password', '--tuples-only', '--no-align'];
const NO_WAIT = ' -c synchronous_commit=off';
const POLL_MS = 50;
/** A load needs bytes for its indexes, and more before it is cleaned up. */
const MAX_GROWTH = 1.2;
const LEFTOVERS_FIX = 'The log of Cloudlet says why; DROP DATABASE as the administrator of the server';

export interface DumpsDeps {
  readonly links: PostgresqlLinks;
  readonly clients: Clients;
  /** Null: the server is ours. */
  readonly guest: () => store.Guest | null;
  readonly alarms: ManagedEngineOptions['alarms'];
  readonly warn: (text: string) => void;
  /** Cloudlet's directory for the files of archives that are being loaded. */
  readonly folder: string;
}

interface Taking extends DumpHow {
  readonly user: string;
  readonly format: string;
  /** SQL before the first statement. */
  readonly roles: string;
}

interface Loading extends LoadHow {
  readonly database: EngineDatabase;
  readonly dump: Readable;
  /** See Lenient. */
  readonly hasLines: boolean;
  /** Number of the first line of the dump. */
  readonly firstLine: number;
  /** Rows for existing tables: all of them, or none. */
  readonly isDataOnly?: boolean;
}

const DUMPER_LOCK = 'dumper';

export class PostgresqlDumps {
  readonly #deps: DumpsDeps;
  readonly #locks = new KeyedMutex();
  #loads = 0;

  constructor(deps: DumpsDeps) {
    this.#deps = deps;
  }

  async dump(of: EngineDatabase, format: string, { signal, isForPoint = false }: DumpHow): Promise<Dump> {
    const { links, guest } = this.#deps;
    // On the operator's server we may be unable to create a role that reads everything.
    const user = guest() === null ? store.DUMPER : store.rolesOf(of.database).local;
    if (guest() !== null) await links.putBackPassword(user);
    const roles = guest() === null ? await this.#prepare(of.database) : '';
    const { contentType, extension } = FORMATS[format as keyof typeof FORMATS];
    const how = { user, format, signal, isForPoint };
    const stream = await this.#taken(of.database, { ...how, roles: format === 'sql' ? roles : '' });
    const tests = guest() === null && format === 'sql' ? await this.#testsOf(of.database) : [];
    const extras = tests.map((name) => ({
      name,
      statements: `CREATE DATABASE ${store.foreign(name)};\n\\connect ${store.foreign(name)}`,
      open: async () => {
        await links.asAdmin((client) => grantToDumper(client, name));
        return this.#taken(name, { ...how, roles: '' });
      },
    }));
    return { contentType, extension, sizeBytes: null, stream: joinedDump(stream, extras) };
  }

  #testsOf(database: string): Promise<string[]> {
    return this.#deps.links.asAdmin((client) => store.ownedBy(client, store.rolesOf(database)));
  }

  /** The dump of one database. */
  async #taken(
    database: string,
    { user, format, roles, signal, isForPoint = false }: Taking,
  ): Promise<Readable> {
    const { links, clients } = this.#deps;
    const { option } = FORMATS[format as keyof typeof FORMATS];
    const work = {
      program: 'dump',
      args: [option, '--no-owner', '--no-acl', LOCK_WAIT],
      user,
      password: links.passwordOf(user),
      env: {
        PGDATABASE: database,
        PGOPTIONS: '-c statement_timeout=0 -c default_transaction_read_only=on',
      },
    } as const;
    const run = await clients.run(work, isForPoint ? 'point' : 'dump');
    return dumpOf(run, { signal, through: new DumpPrelude(roles), asError: dumpFailed });
  }

  /** Only on our servers; returns the beginning of an SQL dump. */
  async #prepare(database: string): Promise<string> {
    const { links } = this.#deps;
    const verifier = await scramVerifier(links.passwordOf(store.DUMPER));
    return links.inDatabase(database, async (client) => {
      // Concurrent changes of the same role or database fail.
      const putBack = () => store.putBackDumper(client, database, verifier);
      await this.#locks.run(DUMPER_LOCK, putBack).catch((error) => {
        throw error.code === store.LOCK_NOT_AVAILABLE ? dumpFailed(error.message) : error;
      });
      return store.rolesNeeded(client);
    });
  }

  /** See Engine.load(): loads into a second database, which then replaces the first. */
  async load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    const folder = join(this.#deps.folder, String(++this.#loads));
    const text = await textOf(dump, { folder, leftOut: how.leftOut });
    try {
      const { isDataOnly, pieces } = await withoutTables(text.stream);
      const whole = { ...text, stream: Readable.from(pieces, { objectMode: false }) };
      // The stream may fail before anyone reads it.
      whole.stream.once('error', () => {});
      if (isDataOnly && how.adding !== undefined) await this.#add(database, whole, how);
      else await this.#load(database, whole, how);
    } finally {
      text.stream.destroy();
      text.close();
    }
  }

  /** Adds rows to the existing tables, in one transaction. */
  async #add(database: EngineDatabase, { stream, hasLines }: DumpText, how: LoadHow): Promise<void> {
    how.adding?.();
    const parts = await DumpParts.of(stream);
    const first = { firstLine: parts.firstLine, hasLines };
    const all = { database, dump: parts.content(), isDataOnly: true, ...first, ...how };
    await this.#fill(database.database, all);
  }

  async #load(database: EngineDatabase, { stream, hasLines }: DumpText, how: LoadHow): Promise<void> {
    const { links, guest } = this.#deps;
    const { signal } = how;
    const roles = store.rolesOf(database.database);
    const fresh = `t_${randomName(16)}`;
    try {
      await links.asAdmin((client) => store.makeDatabase(client, fresh, { roles, guest: guest() }));
      await links.inDatabase(fresh, (client) => store.giveSchema(client, roles.group));
      const parts = await DumpParts.of(stream);
      const first = { firstLine: parts.firstLine, hasLines };
      await this.#fill(fresh, { database, dump: parts.content(), ...first, ...how });
      for (let name = await parts.nextName(); name !== null; name = await parts.nextName())
        if (guest() === null) await this.#loadTest(name, parts, { database, signal });
      signal.throwIfAborted();
      await this.#swap(database, fresh);
    } finally {
      await links.asAdmin((client) => store.dropDatabase(client, fresh));
    }
  }

  /** Omits a test database that cannot be loaded, with a warning: the tenant's own database matters more. */
  async #loadTest(
    name: string,
    parts: DumpParts,
    { database, signal }: Pick<Loading, 'database' | 'signal'>,
  ): Promise<void> {
    const { links, guest, warn } = this.#deps;
    const roles = store.rolesOf(database.database);
    const fresh = `t_${randomName(16)}`;
    try {
      const target = await links.asAdmin((client) => freeName(client, name, roles));
      // The database exists already.
      if (target === null) return;
      await links.asAdmin((client) => store.makeDatabase(client, fresh, { roles, guest: guest() }));
      await links.inDatabase(fresh, (client) => store.giveSchema(client, roles.group));
      const all = { database, dump: parts.content(), hasLines: false, firstLine: 1, signal };
      await this.#fill(fresh, all);
      if (await parts.isBroken()) throw new Error('the dump is incomplete');
      await links.asAdmin((client) => handOver(client, { fresh, target, owner: roles.group }));
    } catch (error) {
      signal.throwIfAborted();
      warn(`the database ${JSON.stringify(name)} of ${database.database} was not loaded: ${error}`);
    } finally {
      await links.asAdmin((client) => store.dropDatabase(client, fresh));
    }
  }

  /** Removes databases left by crashes. */
  async sweep(): Promise<void> {
    const { links, guest, alarms, warn, folder } = this.#deps;
    rmSync(folder, { recursive: true, force: true });
    const names = await links.asAdmin((client) => store.databases(client, guest()));
    const drop = (name: string) => links.asAdmin((client) => store.dropDatabase(client, name));
    const about = { name: 'postgresql', title: 'PostgreSQL', fix: LEFTOVERS_FIX, alarms, warn };
    await removeLeftovers(names, drop, about);
  }

  async #fill(fresh: string, what: Loading): Promise<void> {
    const { links, clients } = this.#deps;
    const { local } = store.rolesOf(what.database.database);
    const { leftOut, hasLines, firstLine, isDataOnly = false } = what;
    let lenient: Lenient | undefined;
    if (leftOut !== undefined) {
      const facts = await links.inDatabase(fresh, (client) => factsOf(client, local));
      const refused = new RefusedStatements(facts, { startsEmpty: !isDataOnly });
      const tried = isDataOnly ? undefined : new TriedStatements(leftOut, { ...facts, hasLines });
      lenient = { leftOut, hasLines, refused, tried };
    }
    // The tenant may have changed the password of its role.
    await links.putBackPassword(local);
    const work = {
      program: 'client',
      args: [...CLIENT, '--set=ON_ERROR_STOP=1', '--file=-'],
      user: local,
      password: links.passwordOf(local),
      env: {
        PGDATABASE: fresh,
        // A database loaded beside the other is synced when it replaces it.
        PGOPTIONS: `-c statement_timeout=0 -c client_min_messages=warning${isDataOnly ? '' : NO_WAIT}`,
      },
    } as const;
    const run = await clients.run(work, 'load');
    const maxBytes = what.database.sizeLimitBytes * MAX_GROWTH;
    await loadInto(run, {
      dump: what.dump,
      through: new DumpFilter({ key: randomBase62(32), lenient, firstLine, isOneTransaction: isDataOnly }),
      signal: what.signal,
      read: (output) => lenient?.tried?.read(output),
      isTooLarge: () =>
        links.asAdmin(async (client) => (await store.databaseBytes(client, fresh)) > maxBytes),
      // Our own line comes before the dump's.
      asSaid: (complaint) => asSaid(complaint, hasLines ? firstLine - 2 : null),
    });
  }

  async #swap(database: EngineDatabase, fresh: string): Promise<void> {
    const { links } = this.#deps;
    const { database: name } = database;
    const old = `t_${randomName(16)}`;
    await links.asAdmin((client) => store.limitDatabase(client, fresh, database.limits));
    let isSwapped = false;
    // New sessions wait for the new database; those of the old one are ended.
    const ending = (async () => {
      while (!isSwapped) {
        await links.asAdmin((client) => store.endSessions(client, { database: name }));
        await sleep(POLL_MS);
      }
    })();
    try {
      await links.asAdmin((client) => store.swapDatabases(client, { name, fresh, old }));
    } finally {
      isSwapped = true;
      await ending;
    }
    await links.asAdmin((client) => store.dropDatabase(client, old));
  }
}

/**
 * psql's first error message without the names of its files. `lines`: added to its line number;
 * null: the user has no lines to match.
 */
function asSaid(complaint: string, lines: number | null): string {
  const line = complaint.split('\n').find((text) => /error:|ERROR:|FATAL:/.test(text)) ?? complaint;
  const where = (_: string, number: string) => (lines === null ? '' : `line ${Number(number) + lines}: `);
  const plain = line.replace(/^psql:\S*?(\d+): /, where).slice(0, 500);
  return plain.trim() === '' ? 'psql ended before it had read the whole dump' : plain.trim();
}

function dumpFailed(complaint: string): Error {
  if (/lock timeout|canceling statement/.test(complaint)) {
    return new AppError(
      'engine_unavailable',
      'A session holds a lock on a table, or has an uncommitted change of a role or database',
      {
        hint: 'end that session or its transaction, then try again',
        retryAfterSeconds: 5,
      },
    );
  }
  return new Error(`pg_dump: ${complaint}`);
}
