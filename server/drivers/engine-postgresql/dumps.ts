/** Whole databases out of PostgreSQL and into it. */
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dump, type EngineDatabase, LoadFailed } from '../../databases/engine.ts';
import { AppError } from '../../errors.ts';
import { randomBase62, randomName } from '../../ids.ts';
import type { ClientPrograms, ClientRun } from './client-programs.ts';
import { DumpFilter } from './dump-filter.ts';
import type { PostgresqlLinks } from './postgresql-links.ts';
import * as store from './postgresql-store.ts';

/** By format. */
const FORMATS = {
  sql: { option: '--format=plain', contentType: 'application/sql', extension: 'sql' },
  custom: { option: '--format=custom', contentType: 'application/octet-stream', extension: 'dump' },
} as const;
export const DUMP_FORMATS: readonly string[] = Object.keys(FORMATS);
/** A tenant that holds a lock for longer is told so. */
const LOCK_WAIT = '--lock-wait-timeout=30s';
const LOOK_MS = 500;
const POLL_MS = 50;
/** A dump needs room for its indexes, and more before it is cleaned up. */
const MAX_GROWTH = 1.2;
/** Of those that are being loaded, and those that were there before: nobody but us has them. */
const PASSING = /^t_[a-z0-9]{16}$/;

export interface DumpsDeps {
  readonly links: PostgresqlLinks;
  readonly clients: ClientPrograms;
  readonly rolesOf: (database: EngineDatabase) => store.Roles;
}

export class PostgresqlDumps {
  readonly #deps: DumpsDeps;

  constructor(deps: DumpsDeps) {
    this.#deps = deps;
  }

  async dump({ database }: EngineDatabase, format: string, signal: AbortSignal): Promise<Dump> {
    const { links, clients } = this.#deps;
    const { option, contentType, extension } = FORMATS[format as keyof typeof FORMATS];
    const run = await clients.run({
      program: 'pg_dump',
      args: [option, '--no-owner', '--no-acl', LOCK_WAIT],
      user: store.DUMPER,
      password: links.passwordOf(store.DUMPER),
      database,
      options: '-c statement_timeout=0 -c default_transaction_read_only=on',
    });
    run.stdin.destroy();
    const stream = new PassThrough();
    signal.addEventListener('abort', run.kill, { once: true });
    stream.once('close', run.kill);
    run.stdout.pipe(stream, { end: false });
    const ended = run.ended.then(({ code, complaint }) => {
      if (code === 0) stream.end();
      else stream.destroy(new Error(`pg_dump ended with ${code}: ${complaint}`));
      return code === 0 ? null : complaint;
    });
    // What fails at once is said as an error, not as a file that breaks off.
    const first = new Promise<null>((resolve) => stream.once('readable', () => resolve(null)));
    stream.once('error', () => {});
    const complaint = await Promise.race([first, ended]);
    if (complaint !== null) throw dumpFailed(complaint);
    return { contentType, extension, sizeBytes: null, stream };
  }

  /** See Engine.load(): into a database beside it, which then takes its place. */
  async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    const { links, rolesOf } = this.#deps;
    const roles = rolesOf(database);
    const fresh = `t_${randomName(16)}`;
    try {
      await links.asAdmin((client) => store.makeDatabase(client, fresh, roles));
      await links.inDatabase(fresh, (client) => store.giveSchema(client, roles.group));
      await this.#fill(fresh, { database, dump, signal });
      signal.throwIfAborted();
      await this.#swap(database, fresh);
    } finally {
      await links.asAdmin((client) => store.dropDatabase(client, fresh));
    }
  }

  /** What crashes left. */
  async sweep(): Promise<void> {
    await this.#deps.links.asAdmin(async (client) => {
      for (const name of await store.databases(client))
        if (PASSING.test(name)) await store.dropDatabase(client, name);
    });
  }

  async #fill(
    fresh: string,
    what: { readonly database: EngineDatabase; readonly dump: Readable; readonly signal: AbortSignal },
  ): Promise<void> {
    const { links, clients, rolesOf } = this.#deps;
    const { local } = rolesOf(what.database);
    // The tenant may have changed it, as everyone may with his own.
    await links.putBackPassword(local);
    const run = await clients.run({
      program: 'psql',
      args: ['--no-psqlrc', '--quiet', '--no-password', '--set=ON_ERROR_STOP=1', '--file=-'],
      user: local,
      password: links.passwordOf(local),
      database: fresh,
      options: '-c statement_timeout=0 -c client_min_messages=warning -c synchronous_commit=off',
    });
    what.signal.addEventListener('abort', run.kill, { once: true });
    run.stdout.resume();
    const isTooLarge = this.#watchSize(fresh, what.database.sizeLimitBytes * MAX_GROWTH, run);
    const fed = feed(what.dump, run);
    const { code, complaint } = await run.ended;
    const problem = await fed;
    if (await isTooLarge) throw new LoadFailed('The dump holds more than the size limit of the database');
    if (problem !== null) throw problem;
    if (code !== 0) throw new LoadFailed(asSaid(complaint));
  }

  /** Ends the load of what grows too large; whether it did. */
  async #watchSize(fresh: string, maxBytes: number, run: ClientRun): Promise<boolean> {
    const over = Symbol('over');
    for (;;) {
      if ((await Promise.race([run.ended, sleep(LOOK_MS, over, { ref: false })])) !== over) return false;
      const bytes = await this.#deps.links.asAdmin((client) => store.databaseBytes(client, fresh));
      if (bytes <= maxBytes) continue;
      run.kill();
      return true;
    }
  }

  async #swap(database: EngineDatabase, fresh: string): Promise<void> {
    const { links, rolesOf } = this.#deps;
    const { group } = rolesOf(database);
    const old = `t_${randomName(16)}`;
    await links.asAdmin((client) => store.limitDatabase(client, fresh, database.limits));
    let isSwapped = false;
    // Who comes meanwhile waits for the new one; who is there is asked to go until nobody is.
    const ending = (async () => {
      while (!isSwapped) {
        await links.asAdmin((client) => store.endSessions(client, { database: group }));
        await sleep(POLL_MS);
      }
    })();
    try {
      await links.asAdmin((client) => store.swapDatabases(client, { name: group, fresh, old }));
    } finally {
      isSwapped = true;
      await ending;
    }
    await links.asAdmin((client) => store.dropDatabase(client, old));
  }
}

/** Resolves with what was wrong with the dump itself; null: nothing. */
async function feed(dump: Readable, run: ClientRun): Promise<Error | null> {
  try {
    await pipeline(dump, new DumpFilter(randomBase62(32)), run.stdin);
    return null;
  } catch (error) {
    // psql left before its end: it says why itself. Otherwise what it got was not the whole.
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE' || code === 'ECONNRESET') return null;
    run.kill();
    return error as Error;
  }
}

/** psql's first complaint without the names of its files. */
function asSaid(complaint: string): string {
  const line = complaint.split('\n').find((text) => /error:|ERROR:|FATAL:/.test(text)) ?? complaint;
  const plain = line.replace(/^psql:\S*?(\d+): /, 'line $1: ').slice(0, 500);
  return plain.trim() === '' ? 'psql was ended before it had read all of the dump' : plain.trim();
}

function dumpFailed(complaint: string): Error {
  if (/lock timeout|canceling statement/.test(complaint)) {
    return new AppError('engine_unavailable', 'A session of the database holds a lock on all of a table', {
      hint: 'end that session or its transaction, then try again',
      retryAfterSeconds: 5,
    });
  }
  return new Error(`pg_dump: ${complaint}`);
}
