/** Base of engines that store a file per database, opened by its own process. */
import { createReadStream, constants as fsConstants, fstatSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import {
  type Access,
  type Dump,
  type DumpHow,
  type EngineDatabase,
  type Insertion,
  type Measured,
  type Query,
  QueryFailed,
  type QueryResult,
  type Readiness,
  type RowChanges,
  RowNotChanged,
  type Scan,
  type Table,
} from '../../databases/engine.ts';
import type { LoadHow } from '../../databases/left-out.ts';
import type { Clock } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import { afterPatience } from '../../platform/host/after-patience.ts';
import type { UserRange } from '../../platform/host/other-users.ts';
import { JsonText } from '../../platform/json/json.ts';
import { openOwn, removeName } from '../host-process/foreign-files.ts';
import type { SizeLimit } from './child-call.ts';
import { failureOf, neverBegan, queryTimeout } from './child-failures.ts';
import { ChildHost } from './child-host.ts';
import type { ChildEngineKind } from './child-kind.ts';
import type { ChildSlots } from './child-slots.ts';
import { Children, COPY_FILE } from './children.ts';
import { queryResultOf } from './json-answers.ts';
import { Examinations, receiveFile } from './load-file.ts';
import { insertBy, scanBy } from './rows/whole-tables.ts';
import { ChildStarts } from './spares/child-starts.ts';
import type { SpareOptions } from './spares/spare-child.ts';
import { type CallHead, type CallOptions, type ChildAnswer, ChildRefused } from './tenant-child.ts';
import { TenantFolders } from './tenant-folders.ts';

export interface ChildEngineOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Folder of the databases; need not exist yet. */
  readonly folder: string;
  /** The data directory. */
  readonly ground: string;
  /** Each database gets one of these users; null: our own user. */
  readonly users: UserRange | null;
  /** See ChildHostOptions. */
  readonly group?: string | undefined;
  /** Slots for processes of open databases, shared by all engines. */
  readonly slots: ChildSlots;
  /** Settings of the process started in advance; undefined: none. */
  readonly spares?: SpareOptions | undefined;
  /** Idle time after which a database is closed. */
  readonly idleMs: number;
  /** Space to keep free on the host's disk; below it databases do not grow. */
  readonly keepFreeBytes: () => number;
  /** Reports damaged data of a database, for the operator; null: repaired. */
  readonly onFault: (databaseId: string, what: string | null) => void;
}

/** Length of a child's error text that is shown. */
const SHOWN_CHARACTERS = 200;
/** How long a call waits for other statements of its database, on a host that is not busy. */
const WAIT_MS = 40_000;

export class ChildEngine {
  readonly dumpFormats: readonly string[];
  readonly #kind: ChildEngineKind;
  readonly #options: ChildEngineOptions;
  readonly #folders: TenantFolders;
  readonly #host: ChildHost;
  readonly #starts: ChildStarts;
  readonly #children: Children;
  readonly #examinations: Examinations;
  readonly #copies = new KeyedMutex();
  readonly #loads = new KeyedMutex();
  readonly #openedForCopy = new Set<string>();
  readonly #active = new Set<string>();
  #prepared: Promise<void> | null = null;

  constructor(kind: ChildEngineKind, options: ChildEngineOptions) {
    const { clock, log, folder, ground, users, group, slots, idleMs, keepFreeBytes } = options;
    this.#kind = kind;
    this.#options = options;
    this.dumpFormats = [kind.dump.format];
    this.#folders = new TenantFolders(folder);
    const { program } = kind;
    this.#host = new ChildHost({ clock, program, codeFolder: join(folder, '.code'), ground, users, group });
    this.#starts = new ChildStarts({ ...options, folders: this.#folders, host: this.#host });
    this.#children = new Children({
      clock,
      log,
      slots,
      idleMs,
      keepFreeBytes,
      onDamage: ({ databaseId }, what) => options.onFault(databaseId, what.slice(0, SHOWN_CHARACTERS)),
      spareMs: kind.spareMs,
      launch: (database, isLast) => this.#starts.launch(database, isLast),
      ended: (database) => this.#starts.ended(database),
      sizeLimitOf: (database) => this.#sizeLimitOf(database),
    });
    this.#examinations = new Examinations({ clock, slots, host: this.#host, keepFreeBytes });
    // Accounts that had databases before will use them soon.
    if (this.#folders.isUsed())
      this.prepareChildren().then(
        () => this.#starts.expect(),
        () => {},
      );
  }

  async readiness(): Promise<Readiness> {
    const reason = (await this.#host.problem()) || null;
    return { available: true, version: this.#kind.version, source: 'built-in', reason, fix: null };
  }

  prepare(): Promise<void> {
    return this.prepareChildren();
  }

  protected prepareChildren(): Promise<void> {
    this.#prepared ??= Promise.all([this.#folders.prepare(), this.#host.prepare()]).then(
      () => this.#starts.prepare(),
      (error) => {
        this.#prepared = null;
        throw error;
      },
    );
    return this.#prepared;
  }

  async provision(database: EngineDatabase, _password: string): Promise<void> {
    await this.prepare();
    const { database: name, number } = database;
    await this.#children.alone(name, () => this.#folders.make(name, this.#host.uidOf(number)));
    // So that the first connection is fast.
    this.#children.warm(database);
  }

  /** Passwords are checked elsewhere; this only ends the sessions. */
  async rotate({ database }: EngineDatabase, _password: string): Promise<void> {
    await this.#children.without(database, async () => {}, 'killed');
  }

  /** Ends the process with all sessions; the next use starts a new one. */
  async restart({ database }: EngineDatabase): Promise<void> {
    await this.#children.without(database, async () => {}, 'killed');
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    const name = database.database;
    if (access === 'none') {
      await this.#children.without(name, () => this.#folders.setAccess(name, access), 'killed');
      return;
    }
    await this.#children.alone(name, () => this.#folders.setAccess(name, access));
    const sizeLimit = await this.#sizeLimitOf(database);
    await this.#children.callIfThere(database, { kind: 'size_limit', limits: database.limits, ...sizeLimit });
  }

  async measure({ database: name }: EngineDatabase): Promise<Measured> {
    const { live, total } = this.#children.figures(name);
    return {
      sizeBytes: live?.sizeBytes ?? (await this.#folders.sizeBytes(name)),
      connections: total.connections,
      statements: total.statements,
      rowsReturned: total.rowsReturned,
      rowsWritten: total.rowsWritten,
    };
  }

  takeActive(): readonly string[] {
    const active = [...this.#active];
    this.#active.clear();
    return active;
  }

  /**
   * Sends a call of the driver protocol to the database's process. Rejects with ChildRefused, ChildGone, and
   * the errors of `onPart`.
   */
  async call(database: EngineDatabase, head: CallHead, options?: CallOptions): Promise<ChildAnswer> {
    await this.prepareChildren();
    this.#active.add(database.databaseId);
    return this.#children.call(database, head, options);
  }

  /** Like call(), but only if the database has a process. */
  callIfThere(database: EngineDatabase, head: CallHead): Promise<void> {
    return this.#children.callIfThere(database, head);
  }

  async query(database: EngineDatabase, { signal, ...query }: Query): Promise<QueryResult> {
    const head = { ...query, kind: 'query', tell: true };
    return queryResultOf(await this.ask(database, head, { timeoutMs: query.timeoutMs, signal }));
  }

  async change(database: EngineDatabase, { statements, ...how }: RowChanges): Promise<void> {
    const { at, rows } = (await this.ask(database, { statements, kind: 'change', tell: true }, how)).head;
    if (at !== null) throw new RowNotChanged({ at: Number(at), rows: Number(rows) });
  }

  scan(database: EngineDatabase, scan: Scan): Promise<void> {
    return scanBy((...call) => this.#say(this.call(database, ...call)), scan);
  }

  insert(database: EngineDatabase, insertion: Insertion): Promise<void> {
    const { batch } = this.#kind;
    return insertBy((...call) => this.#say(this.call(database, ...call)), insertion, batch);
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<JsonText<readonly Table[]>> {
    const timeoutMs = database.limits.statementMs;
    const { body } = await this.ask(database, { kind: 'tables', tell: true }, { timeoutMs, signal });
    return new JsonText([body]);
  }

  async dump(database: EngineDatabase, _format: string, { signal }: DumpHow): Promise<Dump> {
    const folder = this.#folders.folder(database.database);
    // One at a time: all copies use the same file, which is unlinked once it is open.
    const fd = await this.#copies.run(database.database, () =>
      this.#evenClosed(database.database, async () => {
        await this.#say(this.call(database, { kind: 'copy' }, { signal }));
        const opened = openOwn(folder, COPY_FILE, fsConstants.O_RDONLY);
        removeName(join(folder, COPY_FILE));
        return opened;
      }),
    );
    const { format, contentType } = this.#kind.dump;
    const stream = createReadStream('', { fd, signal });
    // Prevents an unhandled error before there is a reader, which still gets the error.
    stream.once('error', () => {});
    return { contentType, extension: format, sizeBytes: fstatSync(fd).size, stream };
  }

  /** Runs `work` with a process even if the database is suspended. */
  async #evenClosed<T>(name: string, work: () => Promise<T>): Promise<T> {
    if ((await this.#folders.access(name)) !== 'none') return work();
    this.#openedForCopy.add(name);
    try {
      return await work();
    } finally {
      this.#openedForCopy.delete(name);
      await this.#children.without(name, async () => {});
    }
  }

  async load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    await this.prepareChildren();
    // One at a time, because all loads use the same folder.
    await this.#loads.run(database.database, () => this.#replace(database, dump, how));
    this.#active.add(database.databaseId);
  }

  async #replace(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    const { database: name, sizeLimitBytes } = database;
    const { loaded: kind } = this.#kind;
    const folder = await this.#folders.stage(name);
    try {
      const received = await receiveFile(dump, { folder, kind, sizeLimitBytes, ...how });
      const { file, isAdded } = received;
      const uid = this.#host.uidOf(database.number);
      await this.#folders.give(folder, uid, file);
      const examine = () => this.#examinations.examine({ folder, database, received, how });
      if (!isAdded) await examine();
      await this.#children.without(name, async () => {
        if (isAdded) await this.#folders.copyToStage(name, uid).then(examine);
        await this.#folders.swap(name);
      });
      this.#options.onFault(database.databaseId, null);
    } catch (error) {
      await this.#folders.unstage(name);
      throw error;
    }
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    const { stream } = await this.dump(from, this.#kind.dump.format, { signal });
    await this.load(to, stream, { signal }).finally(() => stream.destroy());
  }

  async drop(name: string): Promise<void> {
    await this.#children.without(name, () => this.#folders.remove(name), 'killed');
    this.#children.forgetFigures(name);
  }

  /** Whether a process waits for the next database. */
  get hasSpare(): boolean {
    return this.#starts.hasSpare;
  }

  /** Process id of the database's child; null: none. */
  processOf(database: EngineDatabase): number | null {
    return this.#children.processOf(database.database);
  }

  list(): Promise<readonly string[]> {
    return this.#folders.list();
  }

  async close(): Promise<void> {
    await Promise.all([this.#children.close(), this.#starts.close()]);
  }

  /** Throws `database_not_ready` when access is `none`. */
  async #sizeLimitOf({ database, sizeLimitBytes }: EngineDatabase): Promise<SizeLimit> {
    const access = await this.#folders.access(database);
    if (access === 'none' && !this.#openedForCopy.has(database))
      throw new AppError('database_not_ready', 'The database is suspended');
    return { sizeLimitBytes, mayGrow: access === 'full' };
  }

  /** A call of an interactive user, limited to `timeoutMs`. */
  protected async ask(
    database: EngineDatabase,
    head: CallHead,
    { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  ): Promise<ChildAnswer> {
    const { clock } = this.#options;
    const [waiting, timeout] = [new AbortController(), new AbortController()];
    let waitedMs = 0;
    const endWait = afterPatience(WAIT_MS, (passedMs) => {
      waitedMs = passedMs;
      waiting.abort();
    });
    let timer: NodeJS.Timeout | undefined;
    let begunAt = Number.POSITIVE_INFINITY;
    const onBegin = () => {
      endWait();
      begunAt = clock.monotonic();
      timer = setTimeout(() => timeout.abort(), timeoutMs);
    };
    const either = AbortSignal.any([signal, waiting.signal, timeout.signal]);
    let isOverTime = false;
    const answer = this.call(database, head, { signal: either, onBegin }).catch((error: unknown) => {
      isOverTime = error instanceof ChildRefused && error.isOverTime;
      throw error;
    });
    try {
      return await this.#say(answer);
    } catch (error) {
      // A child with its own time limit may answer before our timer fires. On a busy host, the message that
      // the query began may arrive with the answer, so the child's own time is more exact than ours.
      const isLimit = error instanceof QueryFailed && error.engineCode === this.#kind.timeLimitName;
      const isLong = isLimit && clock.monotonic() - begunAt >= timeoutMs;
      const isLate = isOverTime || isLong;
      if ((timeout.signal.aborted || isLate) && !signal.aborted) throw queryTimeout(timeoutMs, error);
      if (waiting.signal.aborted && !signal.aborted) throw neverBegan(waitedMs, error);
      throw error;
    } finally {
      endWait();
      clearTimeout(timer);
    }
  }

  async #say(answer: Promise<ChildAnswer>): Promise<ChildAnswer> {
    try {
      return await answer;
    } catch (error) {
      throw failureOf(error, this.#kind.errorName);
    }
  }
}
