/** SQL of published ports. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

/** Either `public_port` or `hostname` is set; neither after the port was reassigned. */
export interface PublishedRow {
  readonly port_id: string;
  readonly vm_id: string;
  readonly account_id: number;
  readonly guest_port: number;
  readonly public_port: number | null;
  /** The former port, reassigned to another machine. */
  readonly former_port: number | null;
  readonly hostname: string | null;
  /** ms since 1970. */
  readonly created_at: number;
}

/** A public port whose machine has not run for long. */
export type IdlePort = PublishedRow & { readonly public_port: number };

const COLUMNS = 'port_id, vm_id, account_id, guest_port, public_port, former_port, hostname, created_at';
const IDLE = `v.started_at IS NULL AND v.state IN ('created', 'stopped', 'error') AND v.state_changed_at <= ?`;

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

  /** Published ports whose machines last ran before `before` (ms), longest idle first. */
  idlePorts(before: number): Awaitable<IdlePort[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS.replace(/\w+/g, 'p.$&')} FROM vm_ports p JOIN vms v ON v.vm_id = p.vm_id
       WHERE p.public_port IS NOT NULL AND p.created_at <= ? AND ${IDLE} ORDER BY v.state_changed_at, p.id`,
      before,
      before,
    );
  }

  /** Changes no row if the machine has run since `before`, or has another port by now. */
  giveAway({ port_id, public_port }: IdlePort, before: number): Statement {
    return {
      sql: `UPDATE vm_ports SET former_port = public_port, public_port = NULL
            WHERE port_id = ? AND public_port = ? AND EXISTS
              (SELECT 1 FROM vms v WHERE v.vm_id = vm_ports.vm_id AND ${IDLE})`,
      params: [port_id, public_port, before],
    };
  }

  /** Assigns a port after a reassignment. Changes no row if it already has one. */
  regain({ port_id, former_port }: PublishedRow, port: number): Statement {
    return {
      sql: `UPDATE vm_ports SET public_port = ?, former_port = ?
            WHERE port_id = ? AND public_port IS NULL AND hostname IS NULL`,
      params: [port, port === former_port ? null : former_port, port_id],
    };
  }

  /** Changes no row when the port or name is taken. */
  insert(row: PublishedRow): Statement {
    return {
      sql: `INSERT INTO vm_ports (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      params: [
        ...[row.port_id, row.vm_id, row.account_id, row.guest_port, row.public_port, row.former_port],
        ...[row.hostname, row.created_at],
      ],
    };
  }

  /** After insert(): changes no row if the account has `max` ports or more. */
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
