/** SQL of shares: links to files and folders. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface ShareRow {
  readonly id: number;
  readonly share_id: string;
  readonly account_id: number;
  readonly bucket_id: number;
  /** The current name of its bucket. */
  readonly bucket: string;
  /** An object's name; ends with "/" or empty: a folder. */
  readonly name: string;
  /** null: created by the owner, not by an access key. */
  readonly key_id: string | null;
  readonly password_hash: string | null;
  readonly expires_at: number | null;
  readonly max_downloads: number | null;
  readonly downloads: number;
  readonly last_at: number | null;
  readonly created_at: number;
}

/** Downloads that are not stored yet. */
export interface SeenDownloads {
  readonly count: number;
  /** ms since 1970. */
  readonly at: number;
}

export type NewShareRow = Omit<ShareRow, 'id' | 'bucket' | 'downloads' | 'last_at'>;

const SELECT = `SELECT s.id, s.share_id, s.account_id, s.bucket_id, b.name AS bucket, s.name, s.key_id, s.password_hash,
  s.expires_at, s.max_downloads, s.downloads, s.last_at, s.created_at
  FROM shares s JOIN buckets b ON b.id = s.bucket_id`;

export class ShareSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(shareId: string): Awaitable<ShareRow | undefined> {
    return this.#reads.get(`${SELECT} WHERE s.share_id = ?`, shareId);
  }

  /** Newest first. */
  list(accountId: number, limit: number): Awaitable<ShareRow[]> {
    return this.#reads.all(`${SELECT} WHERE s.account_id = ? ORDER BY s.id DESC LIMIT ?`, accountId, limit);
  }

  /** Refuses when the account has `most` already. */
  insert(row: NewShareRow, most: number): Statement {
    return {
      sql: `INSERT INTO shares
              (share_id, account_id, bucket_id, name, key_id, password_hash, expires_at, max_downloads, created_at)
            SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM shares WHERE account_id = ?) < ?`,
      params: [
        ...[row.share_id, row.account_id, row.bucket_id, row.name, row.key_id, row.password_hash],
        ...[row.expires_at, row.max_downloads, row.created_at, row.account_id, most],
      ],
      expectChanges: 1,
    };
  }

  /** Counts one download. Refuses when the link has ended or its downloads are used up. */
  count(id: number, now: number): Statement {
    return {
      sql: `UPDATE shares SET downloads = downloads + 1, last_at = ? WHERE id = ?
            AND (max_downloads IS NULL OR downloads < max_downloads) AND (expires_at IS NULL OR expires_at > ?)`,
      params: [now, id, now],
      expectChanges: 1,
    };
  }

  /** Adds downloads of a link without a limit; `at`: of the last one. No effect when it is gone. */
  addDownloads(id: number, { count, at }: SeenDownloads): Statement {
    return {
      sql: 'UPDATE shares SET downloads = downloads + ?, last_at = ? WHERE id = ?',
      params: [count, at, id],
    };
  }

  /** Refuses when it is gone. */
  delete(id: number): Statement {
    return { sql: 'DELETE FROM shares WHERE id = ?', params: [id], expectChanges: 1 };
  }

  /** Removes links that expired before `time`. */
  sweep(time: number): Statement {
    return { sql: 'DELETE FROM shares WHERE expires_at < ?', params: [time] };
  }
}
