/** SQL of invitations. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface InvitationRow {
  readonly id: string;
  /** The only host name for which its link is valid; empty: any. */
  readonly host: string;
  readonly label: string;
  /** null: chosen when joining, like the address. */
  readonly username: string | null;
  readonly email: string | null;
  readonly plan: string;
  readonly credits_micro: number | bigint;
  /** Spend cap of each account; null: none. */
  readonly spend_cap_micro: number | bigint | null;
  readonly account_expires_at: number | null;
  readonly max_uses: number;
  readonly uses: number;
  readonly created_at: number;
  readonly expires_at: number;
  readonly revoked_at: number | null;
  readonly created_by: string;
  /** 1: only its mail contains the link. */
  readonly is_mailed: number;
}

/** The creator of invitations that people of an allowed domain ask for. */
export const BY_DOMAIN = 'the domain of the address';

const COLUMNS = `id, host, label, username, email, plan, credits_micro, spend_cap_micro, account_expires_at,
  max_uses, uses, created_at, expires_at, revoked_at, created_by, is_mailed`;
const INVITATION = `SELECT ${COLUMNS} FROM invitations`;
/** Open invitations of certain people, but those that people asked for themselves. */
const OF_PEOPLE = `uses < max_uses AND revoked_at IS NULL AND expires_at > ?
  AND (account_expires_at IS NULL OR account_expires_at > ?) AND created_by <> ?
  AND (username IS NOT NULL OR email IS NOT NULL)`;

/** Someone with an open invitation. */
type InvitedRow = Pick<InvitationRow, 'id' | 'username' | 'email'>;

/** All invited people at a time. */
export interface Seen {
  readonly at: number;
  readonly rows: readonly InvitedRow[];
}

/** Nobody else was invited or got another address since; apart from one invitation. */
const SAME = `NOT EXISTS (SELECT 1 FROM invitations WHERE ${OF_PEOPLE} AND id <> ?
  AND id || ' ' || coalesce(email, '') NOT IN (SELECT value FROM json_each(?)))`;

/** Parameters of SAME. */
function sameAs({ at, rows }: Seen, ownId: string): Statement['params'] {
  const known = rows.map(({ id, email }) => `${id} ${email ?? ''}`);
  return [at, at, BY_DOMAIN, ownId, JSON.stringify(known)];
}

export class InvitationStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  find(id: string): Awaitable<InvitationRow | undefined> {
    return this.#reads.get(`${INVITATION} WHERE id = ?`, id);
  }

  findByToken(tokenHash: string): Awaitable<InvitationRow | undefined> {
    return this.#reads.get(`${INVITATION} WHERE token_hash = ?`, tokenHash);
  }

  after(id: string, limit: number): Awaitable<InvitationRow[]> {
    return this.#reads.all(`${INVITATION} WHERE id > ? ORDER BY id LIMIT ?`, id, limit);
  }

  /** Names and addresses in open invitations, but those that people asked for themselves. */
  async seen(at: number): Promise<Seen> {
    const sql = `SELECT id, username, email FROM invitations WHERE ${OF_PEOPLE}`;
    return { at, rows: await this.#reads.all<InvitedRow>(sql, at, at, BY_DOMAIN) };
  }

  /** `seen`: refused if others have been invited since, at any node. */
  insert(row: InvitationRow, tokenHash: string, seen?: Seen): Statement {
    return {
      sql: `INSERT INTO invitations (${COLUMNS}, token_hash)
        SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${seen === undefined ? '1 = 1' : SAME}`,
      params: [
        ...[row.id, row.host, row.label, row.username, row.email, row.plan, row.credits_micro],
        ...[
          row.spend_cap_micro,
          row.account_expires_at,
          row.max_uses,
          row.uses,
          row.created_at,
          row.expires_at,
          row.revoked_at,
        ],
        ...[row.created_by, row.is_mailed, tokenHash],
        ...(seen === undefined ? [] : sameAs(seen, row.id)),
      ],
      expectChanges: 1,
    };
  }

  /**
   * Replaces the link, for the same account or accounts. Refused if no use is left, or the invitation was
   * revoked, or if others have been invited since `seen`.
   */
  renew(row: InvitationRow, tokenHash: string, seen: Seen): Statement {
    return {
      sql: `UPDATE invitations SET token_hash = ?, host = ?, label = ?, email = ?, expires_at = ?, is_mailed = ?
        WHERE id = ? AND uses < max_uses AND revoked_at IS NULL AND ${SAME}`,
      params: [
        ...[tokenHash, row.host, row.label, row.email, row.expires_at, row.is_mailed, row.id],
        ...sameAs(seen, row.id),
      ],
      expectChanges: 1,
    };
  }

  /** Counts a use. Refused if no use is left, or if the link has expired or was revoked or replaced. */
  use(tokenHash: string, now: number): Statement {
    return {
      sql: `UPDATE invitations SET uses = uses + 1
        WHERE token_hash = ? AND uses < max_uses AND expires_at > ? AND revoked_at IS NULL`,
      params: [tokenHash, now],
      expectChanges: 1,
    };
  }

  /** Repeating it changes nothing. */
  revoke(id: string, now: number): Statement {
    return {
      sql: 'UPDATE invitations SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL',
      params: [now, id],
    };
  }
}
