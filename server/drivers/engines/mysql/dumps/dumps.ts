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
import { routinesAsSql } from './routines-store.ts';
import { Swaps } from './swaps.ts';
import { TriedPrograms } from './tried-programs.ts';
import { viewsAsSql } from './views-store.ts';

export const DUMP_FORMATS: readonly string[] = ['sql'];
/** A row may be larger than the statements that the server takes. */
const WORDS = ['--skip-lock-tables', '--hex-blob', '--no-tablespaces', '--max-allowed-packet=1G'];
/** A table that is locked alone cannot be filled if its defaults use a sequence. */
const NO_LOCKS = '--skip-add-locks';
/** A consistent snapshot of the whole database; triggers come with their tables. */
const WHOLE = ['--single-transaction', '--quick', '--triggers'];
const NEVER = new AbortController().signal;
const MIB = 2 ** 20;
/** A function with constant arguments may run when the server looks at a view. */
const LOOK_MS = 30_000;
/** A lock was held, or a table altered; also while a view was read for too long. */
const LOCKED = [1205, 1412, 1969];
/** Allowance for new tables; empty ones take space too. */
const MAX_GROWTH = 1.2;
const GROWTH_BYTES = 16 * MIB;
const BROKEN = 'it needs a table, view or function that was left out or is not in the file';
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
  /** Whether the server is the operator's. */
  readonly isGuest: boolean;
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

interface Taking {
  /** A user with the tenant's rights, who reads the views. */
  readonly user: string;
  readonly signal: AbortSignal;
  readonly kind: SlotKind;
  /** Collects views that are left out; missing: the log names them. */
  readonly leftOut?: LoadHow['leftOut'];
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
    const { writer: user } = store.usersOf(database);
    const whole = (name: string) => this.#taken(name, WHOLE, { user, signal, kind });
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
      tried: admin.dialect.hasProc ? new TriedPrograms(leftOut) : undefined,
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
      const programs = await this.#programsOf(fresh, { signal, leftOut });
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

  /** `args`: of mariadb-dump, which writes all but views and, on an operator's server, routines. */
  async #taken(database: string, args: readonly string[], taking: Taking): Promise<Readable> {
    const { clients, links, isGuest } = this.#deps;
    const { signal, kind } = taking;
    const names = await links.asAdmin((admin) => contents.namesOf(admin, database));
    const views = await this.#views(database, names.views, taking);
    const dumper = await this.#dumper(database);
    const programs = dumper.seesRoutines ? ['--routines', ...(isGuest ? [] : ['--events'])] : [];
    const routines = dumper.seesRoutines
      ? Buffer.alloc(0)
      : await links.asAdmin((admin) => routinesAsSql(admin, database));
    const all = [...WORDS, NO_LOCKS, ...args, ...programs, ...withoutViews(database, names)];
    const run = await clients.run({ program: 'dump', args: all, ...dumper }, kind);
    const last = Buffer.concat([routines, views]);
    const through = new DumpLines({ made: { database, tables: names.tables, last } });
    return dumpOf(run, { signal, through, asError: dumpFailed });
  }

  /**
   * The user of mariadb-dump can run nothing of the tenant's: what is a table now may be a view when it is
   * read. On the operator's server, only the administrator sees the routines of all users.
   */
  async #dumper(
    database: string,
  ): Promise<{ readonly user: string; readonly password: string; readonly seesRoutines: boolean }> {
    const { links, isGuest } = this.#deps;
    const isPassing = database.startsWith('t_');
    const { dumper } = store.usersOf(database);
    const user = !isGuest ? store.DUMPER : isPassing ? database : dumper;
    const password = links.passwordOf(user);
    if (user === dumper) await links.asAdmin((admin) => store.makeDumper(admin, database, password));
    return { user, password, seesRoutines: user !== dumper };
  }

  async #views(
    database: string,
    names: readonly string[],
    { user, leftOut }: Pick<Taking, 'user' | 'leftOut'>,
  ): Promise<Buffer> {
    const { links, warn } = this.#deps;
    if (names.length === 0) return Buffer.alloc(0);
    const limit = links.dialect.timed(LOOK_MS);
    const read = links.asOurs({ user, database }, (driver) => viewsAsSql(driver, { database, names, limit }));
    const { sql, broken } = await read.catch((error) => {
      throw LOCKED.includes(error.errno) ? locked() : error;
    });
    for (const { name } of broken) leftOut?.add({ line: null, text: `VIEW ${name}`, reason: BROKEN });
    const [first] = leftOut === undefined ? broken : [];
    if (first !== undefined)
      warn(
        `a dump of ${database} has ${broken.length} views only as comments, ` +
          `first ${JSON.stringify(first.name)}: ${first.reason}`,
      );
    return sql;
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
      read: lenient?.tried && ((output) => lenient.tried?.read(output)),
      isTooLarge: () => links.asAdmin(async (admin) => (await bytes(admin, database)) > most),
      asSaid: (complaint) => {
        const end = through.endsWithin ? '; the file ends within a statement: it may be cut off' : '';
        return asSaid(complaint, (line) => through.lineOf(line)) + end;
      },
    });
    return through.isDump;
  }

  /** Routines, triggers, events; then views, which may need them. */
  async #programsOf(
    database: string,
    { signal, leftOut }: Pick<Taking, 'signal' | 'leftOut'>,
  ): Promise<Buffer> {
    const args = ['--no-data', '--no-create-info', '--triggers'];
    return buffer(await this.#taken(database, args, { user: database, signal, kind: 'load', leftOut }));
  }
}

/** Names for mariadb-dump. Those of tables, because it compares ignored ones without case and accents. */
function withoutViews(database: string, { tables, views }: contents.Names): string[] {
  const ignored = tables.length > 0 ? [] : views.map((view) => `--ignore-table=${database}.${view}`);
  return [...ignored, '--', database, ...(views.length > 0 ? tables : [])];
}

/**
 * The client's error message, which is its last line: the preceding lines repeat the statement,
 * which is data. `lineOf`: the line of the file.
 */
function asSaid(complaint: string, lineOf: (counted: number) => number): string {
  const line = complaint.split('\n').findLast((text) => /^ERROR\b/.test(text)) ?? '';
  const where = (_: string, number: string) => `) at line ${lineOf(Number(number))}:`;
  const plain = line
    .replace(/\) at line (\d+):/, where)
    .trim()
    .slice(0, 500);
  return plain === '' ? 'the client ended before it had read the whole dump' : plain;
}

function dumpFailed(complaint: string): Error {
  if (/\b(?:1205|1412)\b/.test(complaint)) return locked();
  return new Error(`mariadb-dump: ${complaint}`);
}

function locked(): AppError {
  return new AppError('engine_unavailable', 'A table was altered, or locked by a session, during the dump', {
    hint: 'try again once the tables are no longer being altered',
    retryAfterSeconds: 5,
  });
}
