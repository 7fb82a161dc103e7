/** A whole database as one file: given out while it is used, and taken in its place. */
import type { Readable } from 'node:stream';
import type { Principal } from '../accounts/principal.ts';
import { AppError, invalidField } from '../errors.ts';
import type { Databases } from './databases.ts';
import { type Dump, LoadFailed } from './engine.ts';
import type { Engines } from './engines.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { Database } from './schema.ts';
import { requireReadable, requireReady } from './states.ts';

export interface DumpsDeps {
  readonly databases: Pick<Databases, 'findLive' | 'describe'>;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine' | 'alone'>;
}

interface Wanted {
  /** undefined: the engine's usual one. */
  readonly format: string | undefined;
  readonly signal: AbortSignal;
}

export class Dumps {
  readonly #deps: DumpsDeps;

  constructor(deps: DumpsDeps) {
    this.#deps = deps;
  }

  /** Throws `database_not_ready`, `invalid_request` for a format that the engine does not have. */
  async dump(
    principal: Principal,
    databaseId: string,
    { format, signal }: Wanted,
  ): Promise<Dump & { readonly fileName: string }> {
    const { databases, engines, lifecycle } = this.#deps;
    const row = await databases.findLive(principal, databaseId);
    requireReadable(row);
    const engine = engines.get(row.engine);
    const wanted = format ?? engine.dumpFormats[0] ?? '';
    if (!engine.dumpFormats.includes(wanted)) {
      throw invalidField('format', `must be one of ${engine.dumpFormats.join(', ')} for ${row.engine}`);
    }
    const dump = await engine.dump(lifecycle.inEngine(row), wanted, signal);
    return { ...dump, fileName: `${row.name}.${dump.extension}` };
  }

  /** Replaces all that is in it. Throws `load_failed`, `database_not_ready`; it stays as it was then. */
  async load(
    principal: Principal,
    databaseId: string,
    { dump, signal }: { readonly dump: Readable; readonly signal: AbortSignal },
  ): Promise<Database> {
    const { databases, engines, lifecycle } = this.#deps;
    return lifecycle.alone(databaseId, async () => {
      const row = await databases.findLive(principal, databaseId);
      requireReady(row);
      try {
        await engines.get(row.engine).load(lifecycle.inEngine(row), dump, signal);
      } catch (error) {
        throw error instanceof LoadFailed ? new AppError('load_failed', error.message) : error;
      }
      return databases.describe(principal, databaseId);
    });
  }
}
