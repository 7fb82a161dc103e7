/** Times to which an account's databases can be restored from its servers' archived logs. */
import type { Readable } from 'node:stream';
import { formatTime, readTime } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { type LogBase, type LogLine, type LogPart, reachOf } from '../../recovery/logs/log-lines.ts';
import { Damaged } from '../../recovery/repository/piece-box.ts';
import type { Engine } from '../engine.ts';
import type { Engines } from '../engines.ts';
import type { Lifecycle } from '../life/lifecycle.ts';
import type { DatabaseMoments, NewDatabase } from '../schema.ts';
import type { DatabaseRow } from '../store.ts';
import type { ContinuousArchive } from './continuous-archive.ts';
import type { ServerCopy } from './server-logs.ts';

export interface MomentsDeps {
  readonly archive: ContinuousArchive;
  readonly engines: Pick<Engines, 'get'>;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

/** A database as in a recovery point, or as of a time, ms. */
export type Past = { readonly pointId: string } | { readonly at: number };

/** undefined: the present. Throws `invalid_request`. */
export function pastOf(from: NonNullable<NewDatabase['from']>): Past | undefined {
  if (from.at === undefined) return from.point_id === undefined ? undefined : { pointId: from.point_id };
  if (from.point_id !== undefined) throw invalidField('from', 'must have either point_id or at');
  return { at: readTime('from.at', from.at) };
}

type Line = LogLine & { readonly until: number };

interface Found {
  readonly line: Line;
  readonly base: LogBase;
}

export class Moments {
  readonly #deps: MomentsDeps;

  constructor(deps: MomentsDeps) {
    this.#deps = deps;
  }

  /** Throws `target_unavailable`. */
  async list(row: DatabaseRow): Promise<DatabaseMoments> {
    const reason = this.#whyNot(row);
    const lines = reason === null ? await this.#lines(row) : [];
    const windows = lines.flatMap((line) => {
      const from = Math.max(line.bases[0]?.at ?? Number.POSITIVE_INFINITY, row.created_at);
      const whole = Math.ceil(from / 1000) * 1000;
      return whole < line.until ? [{ from: formatTime(whole), to: formatTime(line.until) }] : [];
    });
    const isEarly = reason === null && windows.length === 0;
    const early = () => this.#deps.archive.problem(row.engine, row.account_id) ?? EARLY;
    return { windows: windows.reverse(), reason: isEarly ? early() : reason };
  }

  /** Throws `point_not_found` for a moment that is not archived, `target_unavailable`. */
  async assertAt(row: DatabaseRow, at: number): Promise<void> {
    await this.#find(row, at);
  }

  /**
   * Dumps the database as of that time. Throws the errors of assertAt(), and `out_of_space`,
   * `data_corrupted`.
   */
  async dump(row: DatabaseRow, at: number, signal: AbortSignal): Promise<Readable> {
    const { archive, engines, lifecycle, assertSpace } = this.#deps;
    const { line, base } = await this.#find(row, at);
    const server = serverOf(row);
    const logs = await archive.logs();
    const of = engines.get(row.engine).serverLogs;
    if (logs === undefined || of === undefined) throw this.#notThen(row, at, []);
    try {
      const stored = await logs.readBase(server, line.line, base);
      const parts = partsUntil(line, base, at);
      const logBytes = parts.reduce((sum, { from, to }) => sum + Number(to - from), 0);
      assertSpace(stored.sizeBytes + logBytes);
      const copy: ServerCopy = {
        accountId: row.account_id,
        facts: stored.facts,
        sizeBytes: stored.sizeBytes,
        base: stored.read,
        log: async function* () {
          for (const part of parts)
            yield { from: part.from, bytes: await logs.readPart(server, line.line, part) };
        },
        logBytes,
      };
      const { stream } = await of.dumpAt(copy, { database: lifecycle.inEngine(row), at, signal });
      return stream;
    } catch (error) {
      if (!(error instanceof Damaged)) throw error;
      throw new AppError('data_corrupted', 'The archived log of the database is damaged', {
        hint: 'Use a recovery point, or a moment before or after the damage',
        cause: error,
      });
    }
  }

  #whyNot({ engine }: DatabaseRow): string | null {
    const { archive, engines } = this.#deps;
    if (engines.get(engine).serverLogs === undefined) return UNFIT;
    return archive.isOn ? null : OFF;
  }

  async #lines(row: DatabaseRow): Promise<readonly Line[]> {
    return this.#deps.archive.lines(row.engine, row.account_id);
  }

  async #find(row: DatabaseRow, at: number): Promise<Found> {
    const reason = this.#whyNot(row);
    if (reason !== null)
      throw notFound(reason, `GET /api/databases/${row.database_id}/points lists recovery points`);
    let lines = await this.#lines(row);
    const engine: Engine = this.#deps.engines.get(row.engine);
    if (at > (lines.at(-1)?.until ?? 0)) {
      await this.#deps.archive.catchUp(engine, row.account_id).catch(() => {});
      lines = await this.#lines(row);
    }
    if (at >= row.created_at) {
      for (const line of lines.toReversed()) {
        const base = line.bases.findLast((one) => one.at <= at);
        if (base !== undefined && at <= line.until) return { line, base };
      }
    }
    throw this.#notThen(row, at, lines);
  }

  #notThen({ database_id: id }: DatabaseRow, at: number, lines: readonly Line[]): AppError {
    const newest = lines.findLast(({ bases }) => bases.length > 0);
    const until = newest === undefined ? '' : `; the newest is ${formatTime(newest.until)} UTC`;
    return notFound(
      `The database cannot be restored as of ${formatTime(at)} UTC`,
      `GET /api/databases/${id}/moments lists the possible times${until}`,
    );
  }
}

/** The parts that contain all commits up to `at`. */
export function partsUntil(line: Pick<LogLine, 'parts'>, base: LogBase, at: number): readonly LogPart[] {
  const { to } = reachOf(base, line);
  const parts = line.parts.filter((part) => part.to > base.from && part.from < to);
  const last = parts.findIndex((part) => part.at >= at && part.at >= base.at);
  return last < 0 ? parts : parts.slice(0, last + 1);
}

const UNFIT = 'This engine has recovery points only: its log is not archived';
const OFF =
  'Continuous protection is off; the operator can enable it with CLOUDLET_RECOVERY_TARGET and CLOUDLET_CONTINUOUS_SECONDS';
const EARLY =
  'No log is archived yet: archiving begins with the first recovery point, once the database server runs';

const serverOf = ({ engine, account_id: id }: DatabaseRow) => `${engine}-${id}`;

function notFound(detail: string, hint: string): AppError {
  return new AppError('point_not_found', detail, { hint });
}
