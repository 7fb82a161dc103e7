/** Dumps and loads of whole MariaDB databases. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  type Dump,
  type DumpHow,
  type EngineDatabase,
  LoadFailed,
  type TestDatabase,
} from '../../../../databases/engine.ts';
import type { LoadHow } from '../../../../databases/left-out.ts';
import { AppError } from '../../../../platform/errors.ts';
import { randomName } from '../../../../platform/ids.ts';
import type { ManagedEngineOptions } from '../../../managed-server/database-server.ts';
import type { Clients, SlotKind } from '../../../managed-server/programs/client-programs.ts';
import { DumpParts } from '../../../managed-server/programs/dump-parts.ts';
import {
  dumpOf,
  joinedDump,
  loadInto,
  removeLeftovers,
} from '../../../managed-server/programs/dump-streams.ts';
import { MOST_TEST_DATABASES } from '../../shared/test-databases.ts';
import { type Admin, databases } from '../admin-store.ts';
import {
  absentFunctions,
  collationsOf,
  enforcedEngine,
  hasFunction,
  reachableDatabases,
} from '../collations-store.ts';
import * as contents from '../contents-store.ts';
import type { MysqlLinks } from '../mysql-links.ts';
import * as store from '../mysql-store.ts';
import { dropTest, foreign, makeTest, testBytes, testDatabases } from '../test-databases-store.ts';
import { MYSQL_FUNCTIONS } from './absent-parts.ts';
import { withoutTables } from './data-only.ts';
import { DumpLines, type DumpLinesOptions } from './dump-lines.ts';
import { Swaps } from './swaps.ts';

export const DUMP_FORMATS: readonly string[] = ['sql'];
const WORDS = ['--skip-lock-tables', '--hex-blob', '--no-tablespaces'];
/** A consistent snapshot of the whole database; triggers come with their tables. */
const WHOLE = ['--single-transaction', '--quick', '--routines', '--triggers', '--events'];
const NEVER = new AbortController().signal;
const MIB = 2 ** 20;
/** Allowance for new tables; empty ones take space too. */
const MAX_GROWTH = 1.2;
const GROWTH_BYTES = 16 * MIB;
const LEFTOVERS_FIX =
  'Stop Cloudlet, remove the folders of these names from databases/mysql/server/home/data, and start it';
const DAMAGED_FIX =
  'Load the last dump or a recovery point into the databases concerned; ' +
  'then remove the files of these names from databases/mysql/loads, and restart';

export interface DumpsDeps {
  readonly links: MysqlLinks;
  readonly clients: Clients;
  /** Waits until the server responds. */
  readonly up: () => Promise<void>;
  /** The user that dumps databases. */
  readonly dumper: () => { readonly user: string; readonly password: string };
  /** Bytes of the files of a database. */
  readonly fileBytes: (admin: Admin, database: string) => Promise<number>;
  /** Cloudlet's directory for the journals of unfinished loads. */
  readonly folder: string;
  readonly alarms: ManagedEngineOptions['alarms'];
  readonly warn: (text: string) => void;
}

interface Into extends Pick<DumpLinesOptions, 'lenient' | 'firstLine' | 'isOneTransaction'> {
  readonly database: string;
  readonly user: string;
  readonly most: number;
}

export class MysqlDumps {
  readonly #deps: DumpsDeps;
  readonly #swaps: Swaps;

  constructor(deps: DumpsDeps) {
    this.#deps = deps;
    const fill = async (database: string, user: string, sql: Buffer) => {
      await this.#fill({ database, user, most: Number.POSITIVE_INFINITY }, Readable.from([sql]), NEVER);
    };
    this.#swaps = new Swaps({ ...deps, fill });
  }

  async dump(
    { database }: EngineDatabase,
    _format: string,
    { signal, isForPoint, hasTests }: DumpHow,
  ): Promise<Dump> {
    const kind = isForPoint ? 'point' : 'dump';
    const whole = (name: string) => this.#taken(name, [...WHOLE, name], { signal, kind });
    const stream = await whole(database);
    const tests = hasTests ? await this.#testDatabases(database) : [];
    const extras = tests.map(({ name }) => ({
      name,
      statements: `CREATE DATABASE ${foreign(name)};\nUSE ${foreign(name)};`,
      open: () => whole(name),
    }));
    const all = joinedDump(stream, extras);
    return { contentType: 'application/sql', extension: 'sql', sizeBytes: null, stream: all };
  }

  /**
   * The limit is enforced within a second, in which a program can create hundreds; no load needs
   * this many.
   */
  async #testDatabases(database: string): Promise<readonly TestDatabase[]> {
    const { links, warn } = this.#deps;
    const all = await links.asAdmin(testDatabases);
    if (all.length > MOST_TEST_DATABASES)
      warn(`a dump of ${database} contains ${MOST_TEST_DATABASES} of ${all.length} test databases`);
    return all.slice(0, MOST_TEST_DATABASES);
  }

  /** See Engine.load(): loads into a second database, whose tables then replace the first's. */
  async load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    // An earlier load that was interrupted at its end.
    await this.#swaps.finish(database.database);
    const { isDataOnly, pieces } = await withoutTables(dump);
    const whole = Readable.from(pieces, { objectMode: false }).once('error', () => {});
    try {
      if (isDataOnly && how.adding !== undefined) await this.#add(database, whole, how);
      else await this.#replace(database, whole, how);
    } finally {
      whole.destroy();
    }
  }

  /** Adds rows to the existing tables, in one transaction. */
  async #add(database: EngineDatabase, dump: Readable, { signal, leftOut, adding }: LoadHow): Promise<void> {
    adding?.();
    const { writer: user } = store.usersOf(database.database);
    const lenient = await this.#lenient(leftOut, { database: database.database, user });
    const most = database.sizeLimitBytes * MAX_GROWTH + GROWTH_BYTES;
    const into = { database: database.database, user, most, lenient, isOneTransaction: true };
    await this.#fill(into, dump, signal);
  }

  async #lenient(
    leftOut: LoadHow['leftOut'],
    { database, user }: Pick<Into, 'database' | 'user'>,
  ): Promise<DumpLinesOptions['lenient']> {
    if (leftOut === undefined) return undefined;
    const { links } = this.#deps;
    const databases = await links.as({ database, user }, reachableDatabases);
    return links.asAdmin(async (admin) => ({
      leftOut,
      collations: await collationsOf(admin),
      hasUuidVersions: await hasFunction(admin, 'uuid_v7'),
      absentFunctions: await absentFunctions(admin, MYSQL_FUNCTIONS),
      databases,
      enforcedEngine: await enforcedEngine(admin),
    }));
  }

  async #replace(database: EngineDatabase, dump: Readable, { signal, leftOut }: LoadHow): Promise<void> {
    const { links } = this.#deps;
    const name = database.database;
    const [fresh, old] = [`t_${randomName(16)}`, `t_${randomName(16)}`];
    try {
      await links.asAdmin(async (admin) => {
        await store.makeDatabase(admin, fresh);
        await store.makeLoader(admin, fresh, links.passwordOf(fresh));
      });
      const most = database.sizeLimitBytes * MAX_GROWTH + GROWTH_BYTES;
      const parts = await DumpParts.of(dump);
      const lenient = await this.#lenient(leftOut, { database: fresh, user: fresh });
      const into = { database: fresh, user: fresh, most, lenient, firstLine: parts.firstLine };
      const isDump = await this.#fill(into, parts.content(), signal);
      // The client skips some text that is not SQL, such as an unclosed comment.
      if (!isDump && (await links.asAdmin((admin) => contents.isEmpty(admin, fresh))))
        throw new LoadFailed('The file creates no table: the database would be empty');
      for (let test = await parts.nextName(); test !== null; test = await parts.nextName())
        await this.#loadTest(test, parts, { user: store.usersOf(name).writer, most, signal });
      signal.throwIfAborted();
      const programs = await this.#programsOf(fresh, signal);
      const before = await links.asAdmin(async (admin) => ({
        replaced: await contents.tablesOf(admin, name),
        access: (await store.accessOf(admin, store.usersOf(name))) ?? 'full',
      }));
      await this.#swaps.run({ database: name, fresh, old, ...before }, programs);
    } finally {
      if (!this.#swaps.isPending(fresh)) await this.#remove(fresh);
    }
  }

  /**
   * Omits a database that cannot be loaded, with a warning: the account's own matters more. `user`:
   * a permanent one, because views belong to their creator.
   */
  async #loadTest(
    name: string,
    parts: DumpParts,
    { user, most, signal }: { readonly user: string; readonly most: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { links, warn } = this.#deps;
    // The database exists already, or the name is not a test database's.
    if (!(await links.asAdmin((admin) => makeTest(admin, name)))) return;
    try {
      await this.#fill({ database: name, user, most }, parts.content(), signal);
      if (await parts.isBroken()) throw new Error('the dump is incomplete');
    } catch (error) {
      await links.asAdmin((admin) => dropTest(admin, name));
      signal.throwIfAborted();
      warn(`the database ${JSON.stringify(name)} was not loaded with the database of ${user}: ${error}`);
    }
  }

  /** Completes or removes the leftovers of crashes. */
  async sweep(): Promise<void> {
    const { links, alarms, warn } = this.#deps;
    await this.#swaps.finishAll();
    if (this.#reportDamaged()) return;
    const names = await links.asAdmin(databases);
    const left = names.filter((name) => !this.#swaps.isPending(name));
    const about = { name: 'mysql', title: 'MariaDB', fix: LEFTOVERS_FIX, alarms, warn };
    await removeLeftovers(left, (name) => this.#remove(name), about);
  }

  /** True if an interrupted load has unknown databases: none is removed then. */
  #reportDamaged(): boolean {
    const { alarms } = this.#deps;
    const damaged = this.#swaps.damaged();
    const detail = `The journals of interrupted loads into MariaDB are damaged: ${damaged.join(', ')}`;
    if (damaged.length > 0) alarms.raise('mysql_loads_damaged', detail, DAMAGED_FIX);
    else alarms.clear('mysql_loads_damaged');
    return damaged.length > 0;
  }

  /** For a deleted database: its loads are not finished. */
  forget(database: string): void {
    this.#swaps.forget(database);
  }

  async #remove(passing: string): Promise<void> {
    await this.#deps.links.asAdmin(async (admin) => {
      await store.dropLoader(admin, passing);
      await store.dropDatabase(admin, passing);
    });
  }

  async #taken(
    database: string,
    args: readonly string[],
    { signal, kind }: { readonly signal: AbortSignal; readonly kind: SlotKind },
  ): Promise<Readable> {
    const { clients, dumper } = this.#deps;
    const work = { program: 'dump', args: [...WORDS, ...args], ...dumper() } as const;
    const run = await clients.run(work, kind);
    return dumpOf(run, { signal, through: new DumpLines({ from: database }), asError: dumpFailed });
  }

  /** Resolves with whether a program made the text as a dump. */
  async #fill(into: Into, dump: Readable, signal: AbortSignal): Promise<boolean> {
    const { links, clients, fileBytes } = this.#deps;
    const { database, user, most, lenient, firstLine = 1, isOneTransaction } = into;
    const bytes = /^[dt]_[a-z0-9]{16}$/.test(database) ? fileBytes : testBytes;
    const args = ['--sandbox', '--binary-mode', '--batch', '--skip-reconnect', '--max-allowed-packet=64M'];
    // The tenant's users have a time limit.
    args.push('--init-command=SET SESSION max_statement_time = 0');
    const work = {
      program: 'client',
      args: [...args, database],
      user,
      password: links.passwordOf(user),
    } as const;
    const run = await clients.run(work, 'load');
    const through = new DumpLines({ lenient, firstLine, isOneTransaction });
    await loadInto(run, {
      dump,
      through,
      signal,
      isTooLarge: () => links.asAdmin(async (admin) => (await bytes(admin, database)) > most),
      asSaid: (complaint) => {
        const end = through.endsWithin ? '; the file ends within a statement: it may be cut off' : '';
        return asSaid(complaint, firstLine - 1) + end;
      },
    });
    return through.isDump;
  }

  /** Routines, triggers, events; then views, which may need them. */
  async #programsOf(database: string, signal: AbortSignal): Promise<Buffer> {
    const views = await this.#deps.links.asAdmin((admin) => contents.viewsOf(admin, database));
    const bare = ['--no-data', '--no-create-info', '--routines', '--triggers', '--events', database];
    const parts = [
      bare,
      ...(views.length === 0 ? [] : [['--no-data', '--skip-triggers', database, ...views]]),
    ];
    const pieces: Buffer[] = [];
    const how = { signal, kind: 'load' } as const;
    for (const args of parts) pieces.push(await buffer(await this.#taken(database, args, how)));
    return Buffer.concat(pieces);
  }
}

/**
 * The client's error message, which is its last line: the preceding lines repeat the statement,
 * which is data. `lines`: added to the number of its line.
 */
function asSaid(complaint: string, lines: number): string {
  const line = complaint.split('\n').findLast((text) => /^ERROR\b/.test(text)) ?? '';
  const where = (_: string, number: string) => `) at line ${Number(number) + lines}:`;
  const plain = line
    .replace(/\) at line (\d+):/, where)
    .trim()
    .slice(0, 500);
  return plain === '' ? 'the client ended before it had read the whole dump' : plain;
}

function dumpFailed(complaint: string): Error {
  if (/\b(?:1205|1412)\b/.test(complaint)) {
    return new AppError(
      'engine_unavailable',
      'A table was altered, or locked by a session, during the dump',
      {
        hint: 'try again once the tables are no longer being altered',
        retryAfterSeconds: 5,
      },
    );
  }
  return new Error(`mariadb-dump: ${complaint}`);
}
