/** SQL of metering: open lines, rated hours, the steady clock's anchor, and holds of running machines. */
import type { Awaitable, Increment, Reads, RowIdOf, Statement } from '../../metadata/metadata.ts';
import { endOfTick } from '../../platform/concurrency.ts';
import type { MeterName } from './meters.ts';
import type { Anchor } from './steady-clock.ts';

type Int = number | bigint;

export interface LineRow {
  readonly meter: MeterName;
  readonly resource_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly variant: string;
  readonly level: Int;
  readonly level_since: Int;
  readonly pending: Int;
  readonly settled_to: Int;
  readonly carry: Int;
  readonly is_closed: number;
}

export interface NewLine {
  readonly meter: MeterName;
  /** The row id of a bucket, as RowIdOf when this commit makes it; a `vm-…`. */
  readonly resourceId: string | number | RowIdOf;
  readonly accountId: number;
  readonly name: string;
  readonly variant: string;
  readonly level: number;
  /** Steady, ticks of the meter. */
  readonly now: number;
}

type UsedLine = Pick<NewLine, 'meter' | 'resourceId'>;

export interface RatedLine {
  readonly meter: MeterName;
  readonly resourceId: string;
  /** End of the rated period, steady, ticks of the meter. */
  readonly now: number;
  /** The charged quantity. */
  readonly quantity: bigint;
  readonly carry: bigint;
}

export interface WindowRow {
  readonly account_id: number;
  /** ms since 1970, a whole hour. */
  readonly window_start: number;
  readonly meter: MeterName;
  readonly resource_id: string;
  readonly name: string;
  readonly variant: string;
  readonly price_nano: Int;
  readonly quantity: Int;
  readonly cost_micro: Int;
}

const LINE = `meter, resource_id, account_id, name, variant, level, level_since, pending, settled_to, carry,
  is_closed`;
/** An idle line is not rated. Its earlier usage is, and there is no later usage yet. */
const AFTER_REST = `settled_to = CASE WHEN usage_lines.level = 0 AND usage_lines.pending = 0 THEN ?
  ELSE usage_lines.settled_to END`;
const WINDOW = `account_id, window_start, meter, resource_id, name, variant, price_nano, quantity,
  cost_micro`;

/** Page size: some milliseconds of work. */
export const PAGE_LINES = 250;

/** Orders the lines of an account. */
export interface LineKey {
  readonly meter: MeterName | '';
  readonly resource_id: string;
}

/** Sorts before all lines. */
export const FIRST_LINE: LineKey = { meter: '', resource_id: '' };

export interface HoldRow {
  readonly resource_id: string;
  readonly account_id: number;
  readonly amount_micro: number | bigint;
}

export class UsageStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /**
   * All lines of an account, perhaps one for each of thousands of buckets, in pages, so that other
   * requests run in between.
   */
  async *linePages(accountId: number): AsyncGenerator<LineRow[]> {
    for (let last: LineKey | undefined = FIRST_LINE; last !== undefined; ) {
      const lines: LineRow[] = await this.linesAfter(accountId, last);
      yield lines;
      last = lines[PAGE_LINES - 1];
      if (last !== undefined) await endOfTick();
    }
  }

  /** At most PAGE_LINES lines of an account, after `last`. */
  linesAfter(accountId: number, last: LineKey): Awaitable<LineRow[]> {
    return this.#reads.all(
      `SELECT ${LINE} FROM usage_lines WHERE account_id = ? AND (meter, resource_id) > (?, ?)
       ORDER BY meter, resource_id LIMIT ${PAGE_LINES}`,
      accountId,
      last.meter,
      last.resource_id,
    );
  }

  /** Accounts with usage to rate, by id, after `after`. */
  async accountsInUse(after: number, limit: number): Promise<number[]> {
    const rows = await this.#reads.all<{ account_id: number }>(
      `SELECT DISTINCT account_id FROM usage_lines
       WHERE account_id > ? AND (level != 0 OR pending != 0 OR is_closed = 1)
       ORDER BY account_id LIMIT ?`,
      after,
      limit,
    );
    return rows.map((row) => row.account_id);
  }

  open({ meter, resourceId, accountId, name, variant, level, now }: NewLine): Statement {
    return {
      sql: `INSERT INTO usage_lines
              (meter, resource_id, account_id, name, variant, level, level_since, settled_to)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [meter, resourceId, accountId, name, variant, level, now, now],
    };
  }

  /** Like open(), also for a line that was closed and is not rated yet. Refuses if it is open. */
  reopen(line: NewLine): Statement {
    const { sql, params } = this.open(line);
    const { now } = line;
    return {
      sql: `${sql} ON CONFLICT (meter, resource_id) DO UPDATE SET ${AFTER_REST}, level = excluded.level,
              level_since = ?, name = excluded.name, is_closed = 0 WHERE usage_lines.is_closed = 1`,
      params: [...params, now, now],
      expectChanges: 1,
    };
  }

  /** Sets the level from `now` (steady, ticks) on. Changes nothing if the line is closed. */
  setLevel({ meter, resourceId }: UsedLine, level: number, now: number): Statement {
    return {
      sql: `UPDATE usage_lines SET ${AFTER_REST}, pending = pending + level * (? - level_since),
              level_since = ?, level = ? WHERE meter = ? AND resource_id = ? AND is_closed = 0`,
      params: [now, now, now, level, meter, resourceId],
    };
  }

  /**
   * Sets what the price depends on. Earlier usage must be rated, or it would have the new price: refuses
   * unless the line was rated up to `ratedTo` (steady, ticks) or has nothing to rate.
   */
  setVariant({ meter, resourceId }: UsedLine, variant: string, ratedTo: number): Statement {
    return {
      sql: `UPDATE usage_lines SET variant = ? WHERE meter = ? AND resource_id = ?
              AND ((level = 0 AND pending = 0) OR settled_to >= ?)`,
      params: [variant, meter, resourceId, ratedTo],
      expectChanges: 1,
    };
  }

  rename({ meter, resourceId }: UsedLine, name: string): Statement {
    const sql = 'UPDATE usage_lines SET name = ? WHERE meter = ? AND resource_id = ?';
    return { sql, params: [name, meter, resourceId] };
  }

  /** Adds `delta` to the level from `now` (steady, ticks) on. Refuses if the line does not exist. */
  change({ meter, resourceId }: UsedLine, delta: number, now: number): Increment {
    return {
      sql: `UPDATE usage_lines SET ${AFTER_REST}, pending = pending + level * (? - level_since),
              level_since = ?, level = level + ? WHERE meter = ? AND resource_id = ?`,
      params: [now, now, now, delta, meter, resourceId],
      expectChanges: 1,
      amounts: [3],
    };
  }

  /** Ends the usage; earlier usage remains to be rated. */
  close({ meter, resourceId }: UsedLine, now: number): Statement {
    return {
      sql: `UPDATE usage_lines SET pending = pending + level * (? - level_since), level_since = ?, level = 0,
              is_closed = 1 WHERE meter = ? AND resource_id = ?`,
      params: [now, now, meter, resourceId],
      expectChanges: 1,
    };
  }

  /** Adds `quantity`, used at `now` (steady, ticks). Changes nothing if the line does not exist. */
  add({ meter, resourceId }: UsedLine, quantity: number, now: number): Statement {
    return {
      sql: `UPDATE usage_lines SET ${AFTER_REST}, pending = pending + level * (? - level_since) + ?,
              level_since = ? WHERE meter = ? AND resource_id = ?`,
      params: [now, now, quantity, now, meter, resourceId],
    };
  }

  /**
   * Adds `bytes` that a database or machine sent, at `now` (steady, ticks). Its line is created with the
   * first ones; bytes after its deletion close it again. Changes nothing if there is none.
   */
  addEgress(of: 'database' | 'vm', id: string, { bytes, now }: { bytes: number; now: number }): Statement {
    const column = `${of}_id`;
    return {
      sql: `INSERT INTO usage_lines (meter, resource_id, account_id, name, variant, level, level_since,
              settled_to, pending, is_closed)
            SELECT 'egress', ${column}, account_id, name, '', 0, ?, ?, ?,
              CASE WHEN state = 'deleting' THEN 1 ELSE 0 END
              FROM ${of}s WHERE ${column} = ?
            ON CONFLICT (meter, resource_id) DO UPDATE SET ${AFTER_REST}, level_since = excluded.level_since,
              pending = usage_lines.pending + excluded.pending, is_closed = excluded.is_closed`,
      params: [now, now, bytes, id, now],
    };
  }

  /** Closes the egress line: sent bytes are still to be rated. Does nothing without a line. */
  closeEgress(resourceId: string): Statement {
    const sql = "UPDATE usage_lines SET is_closed = 1 WHERE meter = 'egress' AND resource_id = ?";
    return { sql, params: [resourceId] };
  }

  /**
   * Subtracts the charged usage from the line. Usage committed since it was read stays, whatever its sign.
   * Refuses if the line does not exist.
   */
  storeRated({ meter, resourceId, now, quantity, carry }: RatedLine): Statement {
    return {
      sql: `UPDATE usage_lines SET pending = pending + level * (? - level_since) - ?, level_since = ?,
              settled_to = ?, carry = ? WHERE meter = ? AND resource_id = ?`,
      params: [now, quantity, now, now, carry, meter, resourceId],
      expectChanges: 1,
    };
  }

  /** Deletes lines of an account that are closed and rated. */
  forgetClosed(accountId: number): Statement {
    return {
      sql: 'DELETE FROM usage_lines WHERE account_id = ? AND is_closed = 1 AND pending = 0',
      params: [accountId],
    };
  }

  /** Adds to the window if it exists. The window shows the latest name of the resource. */
  addToWindow(row: WindowRow): Statement {
    return {
      sql: `INSERT INTO usage_windows (${WINDOW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (account_id, window_start, meter, resource_id, price_nano) DO UPDATE SET
              name = excluded.name, quantity = usage_windows.quantity + excluded.quantity,
              cost_micro = usage_windows.cost_micro + excluded.cost_micro`,
      params: [
        ...[row.account_id, row.window_start, row.meter, row.resource_id, row.name, row.variant],
        ...[row.price_nano, row.quantity, row.cost_micro],
      ],
    };
  }

  /** Windows of an account that begin in the range, oldest first. */
  windowsOf(accountId: number, fromMs: number, toMs: number): Awaitable<WindowRow[]> {
    return this.#reads.all(
      `SELECT ${WINDOW} FROM usage_windows
       WHERE account_id = ? AND window_start >= ? AND window_start < ?
       ORDER BY window_start, meter, resource_id`,
      accountId,
      fromMs,
      toMs,
    );
  }

  /** The last stored anchor of the steady clock, or null. */
  async findAnchor(): Promise<Anchor | null> {
    const row = await this.#reads.get<Anchor>(
      `SELECT boot_id AS "bootId", uptime_ms AS "uptimeMs", wall_ms AS "wallMs", steady_ms AS "steadyMs"
       FROM steady_clock`,
    );
    return row ?? null;
  }

  putAnchor({ bootId, uptimeMs, wallMs, steadyMs }: Anchor): Statement {
    return {
      sql: `INSERT INTO steady_clock (id, boot_id, uptime_ms, wall_ms, steady_ms) VALUES (1, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET boot_id = excluded.boot_id, uptime_ms = excluded.uptime_ms,
              wall_ms = excluded.wall_ms, steady_ms = excluded.steady_ms`,
      params: [bootId, uptimeMs, wallMs, steadyMs],
    };
  }

  findHold(resourceId: string): Awaitable<HoldRow | undefined> {
    return this.#reads.get(
      'SELECT resource_id, account_id, amount_micro FROM holds WHERE resource_id = ?',
      resourceId,
    );
  }

  /** Holds of existing machines, with the machine type. */
  typedHoldsOf(accountId: number): Awaitable<(HoldRow & { readonly instance_type: string })[]> {
    return this.#reads.all(
      `SELECT h.resource_id, h.account_id, h.amount_micro, l.variant AS instance_type
       FROM holds h JOIN usage_lines l ON l.meter = 'vm.time' AND l.resource_id = h.resource_id
       WHERE h.account_id = ? ORDER BY placed_at`,
      accountId,
    );
  }

  holdsOf(accountId: number): Awaitable<HoldRow[]> {
    return this.#reads.all(
      'SELECT resource_id, account_id, amount_micro FROM holds WHERE account_id = ? ORDER BY placed_at',
      accountId,
    );
  }
}

/** Refuses if it has changed since it was read. */
export function reduceHold({ resource_id, amount_micro }: HoldRow, byMicro: bigint): Statement {
  return {
    sql: 'UPDATE holds SET amount_micro = amount_micro - ? WHERE resource_id = ? AND amount_micro = ?',
    params: [byMicro, resource_id, amount_micro],
    expectChanges: 1,
  };
}

/** Refuses if it has changed since it was read. */
export function raiseHold({ resource_id, amount_micro }: HoldRow, byMicro: bigint): Statement {
  return {
    sql: 'UPDATE holds SET amount_micro = amount_micro + ? WHERE resource_id = ? AND amount_micro = ?',
    params: [byMicro, resource_id, amount_micro],
    expectChanges: 1,
  };
}

/** Refuses if it has changed since it was read. */
export function deleteHold({ resource_id, amount_micro }: HoldRow): Statement {
  return {
    sql: 'DELETE FROM holds WHERE resource_id = ? AND amount_micro = ?',
    params: [resource_id, amount_micro],
    expectChanges: 1,
  };
}

export function insertHold({ resource_id, account_id, amount_micro }: HoldRow, placedAt: number): Statement {
  return {
    sql: 'INSERT INTO holds (resource_id, account_id, amount_micro, placed_at) VALUES (?, ?, ?, ?)',
    params: [resource_id, account_id, amount_micro, placedAt],
  };
}
