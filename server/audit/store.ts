/** Rows of the audit log, and the seals over ranges of rows. */
import type { AuditEntry } from '../calls/audit.ts';
import type { Metadata, Reads, Statement } from '../metadata/metadata.ts';

export interface AuditRow {
  readonly id: number;
  readonly at: number;
  readonly account_id: number;
  readonly actor_id: number;
  readonly actor: string;
  readonly via: string;
  readonly credential: string;
  readonly address: string;
  readonly agent: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: string;
  readonly status: number;
  readonly code: string;
  readonly request_id: string;
  readonly detail: string;
  readonly times: number;
  /** Number of its seal; 0: none yet. */
  readonly seal: number;
}

/** A range of rows, chained to the range before. */
export interface SealRow {
  readonly id: number;
  readonly first_at: number;
  readonly last_at: number;
  readonly rows: number;
  readonly bytes: number;
  /** Hexadecimal SHA-256 of its rows. */
  readonly digest: string;
  /** Hexadecimal SHA-256 of the previous head and of this range. */
  readonly head: string;
  readonly sealed_at: number;
  /** When its expired rows were removed; null: not removed. */
  readonly removed_at: number | null;
}

/**
 * In SQLite, ids follow the order of commits, so every row up to the last sealed id is sealed. There, indexes
 * contain only sealed rows, because each index entry would add a page to the commit of the effect.
 */
export interface AuditOrder {
  /** Rows above this id are only in the index of ids; 0: unknown; null: each row is in all indexes. */
  readonly unindexedFrom: number | null;
}

const COLUMNS = `id, at, account_id, actor_id, actor, via, credential, address, agent, action, target, outcome,
  status, code, request_id, detail, times, seal`;

/** Rows up to this id are sealed; 0: unknown. */
const SEALED_TO = 'COALESCE((SELECT last_id FROM audit_seals ORDER BY id DESC LIMIT 1), 0)';
const UNSEALED = `seal = 0 AND id > ${SEALED_TO}`;

export class AuditStore {
  readonly #reads: Reads;

  constructor(reads: Reads | Metadata) {
    this.#reads = reads;
  }

  insert(entry: AuditEntry, at: number, times = 1): Statement {
    const { accountId, actorId, actor, via, credential, address, agent, action } = entry;
    const { target, outcome, status, code, requestId, detail } = entry;
    return {
      sql: `INSERT INTO audit_rows (at, account_id, actor_id, actor, via, credential, address, agent, action,
              target, outcome, status, code, request_id, detail, times)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      // biome-ignore format: a list in the order of the columns
      params: [
        at, accountId, actorId, actor, via, credential, address, agent, action,
        target, outcome, status, code, requestId, detail, times,
      ],
    };
  }

  async order(): Promise<AuditOrder> {
    const sql = `SELECT by_id, ${SEALED_TO} AS sealed_to FROM audit_order`;
    const row = await this.#reads.get<{ by_id: number; sealed_to: number }>(sql);
    return { unindexedFrom: Number(row?.by_id) === 1 ? Number(row?.sealed_to) : null };
  }

  /** Rows of every account with an id above `after` and below `before`, newest first. */
  async between(after: number, before: number, limit: number): Promise<AuditRow[]> {
    const sql = `SELECT ${COLUMNS} FROM audit_rows WHERE id > ? AND id < ? ORDER BY id DESC LIMIT ?`;
    return this.#reads.all<AuditRow>(sql, after, before, limit);
  }

  /** Rows of an account with an id below `before`, newest first. */
  async ofAccount(accountId: number, before: number, limit: number): Promise<AuditRow[]> {
    const sql = `SELECT ${COLUMNS} FROM audit_rows WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT ?`;
    return this.#reads.all<AuditRow>(sql, accountId, before, limit);
  }

  /** The same, but only sealed ones. */
  async sealedOfAccount(accountId: number, before: number, limit: number): Promise<AuditRow[]> {
    const sql = `SELECT ${COLUMNS} FROM audit_rows WHERE account_id = ? AND seal > 0 AND id < ?
                 ORDER BY id DESC LIMIT ?`;
    return this.#reads.all<AuditRow>(sql, accountId, before, limit);
  }

  /** The oldest rows without a seal. */
  async unsealed(limit: number): Promise<AuditRow[]> {
    const sql = `SELECT ${COLUMNS} FROM audit_rows WHERE ${UNSEALED} ORDER BY id LIMIT ?`;
    return this.#reads.all<AuditRow>(sql, limit);
  }

  async rowsOf(seal: number): Promise<AuditRow[]> {
    const sql = `SELECT ${COLUMNS} FROM audit_rows WHERE seal = ? AND seal > 0 ORDER BY id`;
    return this.#reads.all<AuditRow>(sql, seal);
  }

  async countUnsealed(): Promise<number> {
    const sql = `SELECT count(*) AS rows FROM audit_rows WHERE ${UNSEALED}`;
    return Number((await this.#reads.get<{ rows: number }>(sql))?.rows ?? 0);
  }

  async lastSeal(): Promise<SealRow | undefined> {
    return this.#reads.get<SealRow>('SELECT * FROM audit_seals ORDER BY id DESC LIMIT 1');
  }

  async seals(after: number, limit: number): Promise<SealRow[]> {
    return this.#reads.all<SealRow>(
      'SELECT * FROM audit_seals WHERE id > ? ORDER BY id LIMIT ?',
      after,
      limit,
    );
  }

  /** Adds a range of rows that have no seal yet. */
  addSeal(seal: SealRow, lastId: number): Statement[] {
    const { id, first_at, last_at, rows, bytes, digest, head, sealed_at } = seal;
    return [
      {
        // First: of two processes that seal the same number, one is refused before it looks at rows.
        sql: `INSERT INTO audit_seals (id, first_at, last_at, rows, bytes, digest, head, sealed_at, last_id)
              VALUES (?, ?, ?, ?, ?, ?, ?, ?, ? * (SELECT by_id FROM audit_order))`,
        params: [id, first_at, last_at, rows, bytes, digest, head, sealed_at, lastId],
      },
      {
        // If a late row has an id in the range, the number of rows differs, and nothing is sealed.
        sql: `UPDATE audit_rows SET seal = ?
              WHERE seal = 0 AND id <= ? AND id > COALESCE((SELECT last_id FROM audit_seals WHERE id = ?), 0)`,
        params: [id, lastId, id - 1],
        expectChanges: rows,
      },
    ];
  }

  /** The oldest range that has its rows. */
  async oldestKept(): Promise<SealRow | undefined> {
    const sql = 'SELECT * FROM audit_seals WHERE removed_at IS NULL ORDER BY id LIMIT 1';
    return this.#reads.get<SealRow>(sql);
  }

  /** Bytes of all sealed rows. */
  async keptBytes(): Promise<number> {
    const sql = 'SELECT sum(bytes) AS bytes FROM audit_seals WHERE removed_at IS NULL';
    return Number((await this.#reads.get<{ bytes: number | null }>(sql))?.bytes ?? 0);
  }

  /** Its hash is kept, so that the chain can be verified. */
  removeRange(seal: number, at: number): Statement[] {
    return [
      { sql: 'DELETE FROM audit_rows WHERE seal = ? AND seal > 0', params: [seal] },
      // SQLite numbers rows from 1 again once the newest are gone.
      { sql: 'UPDATE audit_seals SET removed_at = ?, last_id = 0 WHERE id = ?', params: [at, seal] },
    ];
  }
}
