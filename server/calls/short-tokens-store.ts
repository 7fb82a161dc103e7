/**
 * SQL of short-lived secrets: codes of logins, and used tickets. They are rows, so that every node
 * accepts those issued by another; only hashes of the secrets are stored.
 */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

/** `device`, `code`: logins of programs. `ticket`: a used ticket. `selection`: files for a zip. */
export type ShortTokenKind = 'device' | 'code' | 'ticket' | 'selection';

/** The hashes of its secrets. */
export interface ShortTokenName {
  readonly kind: ShortTokenKind;
  readonly hash: string;
}

export interface NewShortToken extends ShortTokenName {
  /** The hash of a second secret. */
  readonly otherHash?: string;
  /** The account or address whose tokens are limited. */
  readonly owner: string;
  /** JSON. */
  readonly content: string;
  /** Wall time, ms. */
  readonly createdAt: number;
  readonly endsAt: number;
}

export interface ShortTokenRow {
  readonly hash: string;
  readonly content: string;
  readonly created_at: number;
}

/** A row of a kind whose open tokens are limited. */
export interface OpenToken {
  readonly hash: string;
  readonly owner: string;
}

const COLUMNS = 'hash, content, created_at';

export class ShortTokensStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** undefined: unknown, used or expired at `now`. */
  find({ kind, hash }: ShortTokenName, now: number): Awaitable<ShortTokenRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM short_tokens WHERE kind = ? AND hash = ? AND ends_at > ?`,
      kind,
      hash,
      now,
    );
  }

  /** Like find(), by the hash of the second secret. */
  findByOther(otherHash: string, now: number): Awaitable<ShortTokenRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM short_tokens WHERE other_hash = ? AND ends_at > ?`,
      otherHash,
      now,
    );
  }

  /** Number of open tokens of the kind, and of `owner`. */
  async count(kind: ShortTokenKind, owner: string, now: number): Promise<{ all: number; own: number }> {
    const row = await this.#reads.get<{ all: number; own: number }>(
      `SELECT count(*) AS "all", count(CASE WHEN owner = ? THEN 1 END) AS own
       FROM short_tokens WHERE kind = ? AND ends_at > ?`,
      owner,
      kind,
      now,
    );
    return row ?? { all: 0, own: 0 };
  }

  /** All open tokens of the kind, oldest first. */
  open(kind: ShortTokenKind, now: number): Awaitable<OpenToken[]> {
    return this.#reads.all(
      'SELECT hash, owner FROM short_tokens WHERE kind = ? AND ends_at > ? ORDER BY created_at, id',
      kind,
      now,
    );
  }

  /** Refused as `unique` if a secret already exists. */
  insert(token: NewShortToken): Statement {
    const { kind, hash, otherHash = null, owner, content, createdAt, endsAt } = token;
    return {
      sql: `INSERT INTO short_tokens (kind, hash, other_hash, owner, content, created_at, ends_at)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      params: [kind, hash, otherHash, owner, content, createdAt, endsAt],
    };
  }

  /** Changes one row if its content is still `was`. */
  setContent({ kind, hash }: ShortTokenName, { was, becomes }: { was: string; becomes: string }): Statement {
    return {
      sql: 'UPDATE short_tokens SET content = ? WHERE kind = ? AND hash = ? AND content = ?',
      params: [becomes, kind, hash, was],
    };
  }

  delete({ kind, hash }: ShortTokenName): Statement {
    return { sql: 'DELETE FROM short_tokens WHERE kind = ? AND hash = ?', params: [kind, hash] };
  }

  deleteOldest(kind: ShortTokenKind, owner: string): Statement {
    return {
      sql: `DELETE FROM short_tokens WHERE id = (SELECT id FROM short_tokens WHERE kind = ? AND owner = ?
              ORDER BY created_at, id LIMIT 1)`,
      params: [kind, owner],
    };
  }

  deleteEnded(now: number): Statement {
    return { sql: 'DELETE FROM short_tokens WHERE ends_at <= ?', params: [now] };
  }
}
