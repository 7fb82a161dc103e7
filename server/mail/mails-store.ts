/** SQL of pending mails, and of the results of sent ones. */
import { turnOfAll } from '../metadata/change.ts';
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';
import type { DueRow } from '../resources/serving-order.ts';

/** Times are ms since 1970. */
export interface MailRow {
  readonly id: number;
  readonly mail_id: string;
  readonly account_id: number;
  readonly kind: string;
  readonly recipient: string;
  readonly sealed: Uint8Array | null;
  readonly state: 'asked' | 'pending' | 'sent' | 'failed';
  readonly reason: string | null;
  readonly tries: number;
  readonly next_at: number | null;
  readonly created_at: number;
  readonly expires_at: number;
  readonly ended_at: number | null;
}

export interface NewMailRow {
  readonly mailId: string;
  /** The sender's turn; 0: of no account. */
  readonly accountId: number;
  readonly kind: string;
  readonly topic: string;
  readonly recipient: string;
  readonly sealed: Uint8Array;
  readonly at: number;
  readonly expiresAt: number;
}

/**
 * Mails of one account are sent one after the other; its invitations and its test mails each wait apart, so
 * that a class that is invited delays no other mail of its teacher.
 */
const LANES = 3;
const LANE = `CASE kind WHEN 'invitation' THEN 1 WHEN 'test' THEN 2 ELSE 0 END`;
const COLUMNS =
  'id, mail_id, account_id, kind, recipient, sealed, state, reason, tries, next_at, created_at, expires_at, ended_at';
const INSERT =
  'INSERT INTO mails (mail_id, account_id, kind, topic, recipient, sealed, state, next_at, created_at, expires_at)';

export class MailStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  insert(row: NewMailRow): Statement {
    return {
      sql: `${INSERT} VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?)`,
      params: [
        ...[row.mailId, row.accountId, row.kind, row.topic, row.recipient, row.sealed],
        ...[row.at, row.at, row.expiresAt],
      ],
    };
  }

  /**
   * Refused if `most` of its kind went to the address since `since`, or `mostOfAccount` for the account. An
   * address has no row, so all such commits wait for each other.
   */
  insertUpTo(
    row: NewMailRow,
    { most, mostOfAccount, since }: { most: number; mostOfAccount: number; since: number },
  ): Statement[] {
    const insert = {
      sql: `${INSERT} SELECT ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?
        WHERE (SELECT count(*) FROM mails WHERE kind = ? AND recipient = ? AND created_at > ?) < ?
          AND (SELECT count(*) FROM mails WHERE kind = ? AND account_id = ? AND created_at > ?) < ?`,
      params: [
        ...[row.mailId, row.accountId, row.kind, row.topic, row.recipient, row.sealed],
        ...[row.at, row.at, row.expiresAt],
        ...[row.kind, row.recipient, since, most],
        ...[row.kind, row.accountId, since, mostOfAccount],
      ],
      expectChanges: 1,
    };
    return [turnOfAll(), insert];
  }

  /**
   * To the confirmed address of the account, if it has one and wants mail about this; otherwise
   * does nothing. `about` without the commas around it.
   */
  insertIfWanted(row: Omit<NewMailRow, 'recipient'>, about: string): Statement {
    return {
      sql: `${INSERT} SELECT ?, id, ?, ?, email_folded, ?, 'pending', ?, ?, ? FROM accounts
        WHERE id = ? AND email_verified_at IS NOT NULL AND closed_at IS NULL
          AND ',' || mail_about || ',' LIKE ?`,
      params: [
        ...[row.mailId, row.kind, row.topic, row.sealed, row.at, row.at, row.expiresAt],
        ...[row.accountId, `%,${about},%`],
      ],
    };
  }

  /**
   * A mail requested by an address, unless it was requested `most` times since `since`. All such commits wait
   * for each other.
   */
  insertAsked(
    row: Omit<NewMailRow, 'sealed' | 'topic'>,
    limit: { most: number; since: number },
  ): Statement[] {
    const insert = {
      sql: `${INSERT} SELECT ?, ?, ?, '', ?, NULL, 'asked', NULL, ?, ?
        WHERE (SELECT count(*) FROM mails WHERE kind = ? AND recipient = ? AND created_at > ?) < ?`,
      params: [
        ...[row.mailId, row.accountId, row.kind, row.recipient, row.at, row.expiresAt],
        ...[row.kind, row.recipient, limit.since, limit.most],
      ],
    };
    return [turnOfAll(), insert];
  }

  /** Oldest first. */
  asked(limit: number): Awaitable<MailRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM mails WHERE state = 'asked' ORDER BY id LIMIT ?`, limit);
  }

  /** Sets the text of the requested mail. Refused if it has one already. */
  answer(
    id: number,
    mail: { readonly accountId: number; readonly sealed: Uint8Array; readonly at: number },
  ): Statement {
    return {
      sql: `UPDATE mails SET state = 'pending', account_id = ?, sealed = ?, next_at = ?
        WHERE id = ? AND state = 'asked'`,
      params: [mail.accountId, mail.sealed, mail.at, id],
      expectChanges: 1,
    };
  }

  nextOfEach(): Awaitable<DueRow[]> {
    return this.#reads.all(
      `SELECT account_id * ${LANES} + ${LANE} AS receiver, account_id, min(next_at) AS next_at FROM mails
       WHERE state = 'pending' GROUP BY account_id, ${LANE}`,
    );
  }

  /** `receiver`: of a row of nextOfEach(). */
  nextOf(receiver: number): Awaitable<MailRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM mails WHERE account_id = ? AND ${LANE} = ? AND state = 'pending'
       ORDER BY next_at, id LIMIT 1`,
      Math.floor(receiver / LANES),
      receiver % LANES,
    );
  }

  /** Refused if it was given up in the meantime. */
  putOff(row: MailRow, to: { readonly at: number; readonly reason: string }): Statement {
    return {
      sql: `UPDATE mails SET tries = tries + 1, next_at = ?, reason = ? WHERE id = ? AND state = 'pending'`,
      params: [to.at, to.reason, row.id],
      expectChanges: 1,
    };
  }

  /** Deletes its text, which may contain a link. Refused if it has ended before. */
  end(
    id: number,
    to: { readonly state: 'sent' | 'failed'; readonly reason: string | null; readonly at: number },
  ): Statement {
    return {
      sql: `UPDATE mails SET state = ?, reason = ?, sealed = NULL, next_at = NULL, ended_at = ?,
        tries = tries + 1 WHERE id = ? AND state IN ('asked', 'pending')`,
      params: [to.state, to.reason, to.at, id],
      expectChanges: 1,
    };
  }

  async countSince(kind: string, recipient: string, since: number): Promise<number> {
    const sql = 'SELECT count(*) AS count FROM mails WHERE kind = ? AND recipient = ? AND created_at > ?';
    return Number((await this.#reads.get<{ count: number }>(sql, kind, recipient, since))?.count ?? 0);
  }

  /** The same for an account, to all addresses. */
  async countOfAccount(kind: string, accountId: number, since: number): Promise<number> {
    const sql = 'SELECT count(*) AS count FROM mails WHERE kind = ? AND account_id = ? AND created_at > ?';
    return Number((await this.#reads.get<{ count: number }>(sql, kind, accountId, since))?.count ?? 0);
  }

  /** Whether the account was sent a mail about this since then. */
  async wasTold(kind: string, topic: string, since: number): Promise<boolean> {
    const sql = 'SELECT 1 FROM mails WHERE created_at > ? AND kind = ? AND topic = ? LIMIT 1';
    return (await this.#reads.get(sql, since, kind, topic)) !== undefined;
  }

  /** Administrators that want mail about alarms. */
  async wanting(about: string): Promise<number[]> {
    const rows = await this.#reads.all<{ id: number }>(
      `SELECT id FROM accounts WHERE is_admin = 1 AND is_active = 1 AND email_verified_at IS NOT NULL
         AND closed_at IS NULL AND ',' || mail_about || ',' LIKE ? ORDER BY id`,
      `%,${about},%`,
    );
    return rows.map(({ id }) => id);
  }

  /** Newest first, before row `before`. */
  list(before: number, limit: number): Awaitable<MailRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM mails WHERE id < ? ORDER BY id DESC LIMIT ?`,
      before,
      limit,
    );
  }

  async counts(): Promise<ReadonlyMap<string, number>> {
    const sql = 'SELECT state, count(*) AS count FROM mails GROUP BY state';
    const rows = await this.#reads.all<{ state: string; count: number }>(sql);
    return new Map(rows.map(({ state, count }) => [state, Number(count)]));
  }

  /** Deletes mails that ended before then, and gives up expired ones. */
  sweep(now: number, keptMs: number): Statement[] {
    return [
      {
        sql: `UPDATE mails SET state = 'failed', reason = 'it was of no use any more', sealed = NULL,
          next_at = NULL, ended_at = ? WHERE state IN ('asked', 'pending') AND expires_at <= ?`,
        params: [now, now],
      },
      {
        sql: `DELETE FROM mails WHERE created_at <= ? AND state IN ('sent', 'failed')`,
        params: [now - keptMs],
      },
    ];
  }
}
