/** SQL of every column that holds sealed values, for the rotation of the master key. */
import type { Reads, SqlValue, Statement } from '../metadata.ts';

export interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** Primary key columns, in their order. */
  readonly key: readonly string[];
  /** The sealing context, from the values of `key` or of `contextFrom`. */
  readonly context: (row: SealedRow) => string;
  /** A column that the context needs besides the key. */
  readonly contextFrom?: string;
}

export interface SealedRow {
  /** Values of the primary key. */
  readonly key: readonly SqlValue[];
  readonly sealed: Uint8Array;
  readonly contextValue: SqlValue;
}

/** The contexts are part of the format: all code that seals these columns uses them. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'secrets', column: 'sealed', key: ['name'], context: ({ key }) => `secret:${key[0]}` },
  {
    table: 'api_keys',
    column: 'sealed_key',
    key: ['key_hash'],
    contextFrom: 'key_id',
    context: ({ contextValue }) => `api-key:${contextValue}`,
  },
  {
    table: 'api_keys',
    column: 's3_sealed_secret',
    key: ['key_hash'],
    contextFrom: 'key_id',
    context: ({ contextValue }) => `s3-secret:${contextValue}`,
  },
  {
    table: 'idempotency',
    column: 'sealed_body',
    key: ['scope', 'key'],
    context: ({ key }) => `idempotency:${key[0]}:${key[1]}`,
  },
  {
    table: 'operations',
    column: 'sealed_body',
    key: ['operation_id'],
    context: ({ key }) => `operation:${key[0]}`,
  },
  ...['sealed_secret', 'sealed_old_secret'].map((column) => ({
    table: 'webhooks',
    column,
    key: ['id'],
    contextFrom: 'webhook_id',
    context: ({ contextValue }: SealedRow) => `webhook-secret:${contextValue}`,
  })),
  ...['sealed_password', 'sealed_next_password'].map((column) => ({
    table: 'databases',
    column,
    key: ['id'],
    contextFrom: 'database_id',
    context: ({ contextValue }: SealedRow) => `database-password:${contextValue}`,
  })),
  {
    table: 'encryption_keys',
    column: 'sealed',
    key: ['id'],
    contextFrom: 'key_id',
    context: ({ contextValue }) => `encryption-key:${contextValue}`,
  },
  {
    table: 'mails',
    column: 'sealed',
    key: ['id'],
    contextFrom: 'mail_id',
    context: ({ contextValue }) => `mail:${contextValue}`,
  },
  { table: 'blobs', column: 'wrapped_key', key: ['id'], context: () => 'blob-key' },
];

export class SealedColumnsStore {
  readonly #metadata: Reads;

  constructor(deps: { readonly metadata: Reads }) {
    this.#metadata = deps.metadata;
  }

  /**
   * True if the database has any sealed value, so that a missing key file is a loss and not a first start.
   */
  async holdsSealedValues(): Promise<boolean> {
    for (const { table, column } of SEALED_COLUMNS) {
      const found = await this.#metadata.get(`SELECT 1 FROM ${table} WHERE ${column} IS NOT NULL LIMIT 1`);
      if (found !== undefined) return true;
    }
    return false;
  }

  /**
   * The next rows after `after` (null: the first), in key order, whether they must be sealed again or not.
   */
  async page(column: SealedColumn, after: SealedRow | null, limit: number): Promise<SealedRow[]> {
    const keys = column.key.map((name, i) => `${name} AS k${i}`).join(', ');
    const names = column.key.join(', ');
    const beyond = after === null ? '' : `AND (${names}) > (${column.key.map(() => '?').join(', ')})`;
    const rows = await this.#metadata.all<Record<string, SqlValue>>(
      `SELECT ${keys}, ${column.column} AS sealed, ${column.contextFrom ?? 'NULL'} AS context_value
       FROM ${column.table} WHERE ${column.column} IS NOT NULL ${beyond} ORDER BY ${names} LIMIT ?`,
      ...(after?.key ?? []),
      limit,
    );
    return rows.map((row) => ({
      key: column.key.map((_, i) => row[`k${i}`] ?? null),
      sealed: row.sealed as Uint8Array,
      contextValue: row.context_value ?? null,
    }));
  }

  /** Replaces one sealed value; changes no row if it changed since it was read. */
  replacement(column: SealedColumn, row: SealedRow, sealed: Uint8Array): Statement {
    const where = [...column.key, column.column].map((name) => `${name} = ?`).join(' AND ');
    return {
      sql: `UPDATE ${column.table} SET ${column.column} = ? WHERE ${where}`,
      params: [sealed, ...row.key, row.sealed],
    };
  }
}
