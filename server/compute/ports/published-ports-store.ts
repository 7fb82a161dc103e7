/** SQL of published ports. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

/** Exactly one of `public_port` and `hostname` is set. */
export interface PublishedRow {
  readonly port_id: string;
  readonly vm_id: string;
  readonly account_id: number;
  readonly guest_port: number;
  readonly public_port: number | null;
  readonly hostname: string | null;
  /** ms since 1970. */
  readonly created_at: number;
}

const COLUMNS = 'port_id, vm_id, account_id, guest_port, public_port, hostname, created_at';

export class PublishedPortsStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Oldest first. */
  listOf(vmId: string): Awaitable<PublishedRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM vm_ports WHERE vm_id = ? ORDER BY id`, vmId);
  }

  withHostname(hostname: string): Awaitable<PublishedRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM vm_ports WHERE hostname = ?`, hostname);
  }

  /** The taken public ports of all accounts. */
  async publicPorts(): Promise<number[]> {
    const sql = 'SELECT public_port FROM vm_ports WHERE public_port IS NOT NULL';
    const rows = await this.#reads.all<{ public_port: number }>(sql);
    return rows.map((row) => row.public_port);
  }

  /** Changes no row when the port or name is taken. */
  insert(row: PublishedRow): Statement {
    return {
      sql: `INSERT INTO vm_ports (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      params: [
        ...[row.port_id, row.vm_id, row.account_id, row.guest_port, row.public_port, row.hostname],
        row.created_at,
      ],
    };
  }

  /** Changes no row when the account has `max` of them or more, behind insert(). */
  expectAtMost(accountId: number, max: number): Statement {
    return {
      sql: `UPDATE accounts SET id = id
            WHERE id = ? AND (SELECT count(*) FROM vm_ports WHERE account_id = accounts.id) <= ?`,
      params: [accountId, max],
    };
  }

  /** Changes no row when the machine is gone or being deleted. */
  expectMachine(vmId: string): Statement {
    return { sql: "UPDATE vms SET id = id WHERE vm_id = ? AND state <> 'deleting'", params: [vmId] };
  }

  delete({ port_id }: PublishedRow): Statement {
    return { sql: 'DELETE FROM vm_ports WHERE port_id = ?', params: [port_id] };
  }
}
