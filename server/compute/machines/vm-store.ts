/** SQL of machines and their usage. */
import type { Awaitable, Reads, ResourceChange, Statement } from '../../metadata/metadata.ts';
import type { AccountBlock } from '../../resources/account-stops.ts';
import type { VmState } from './transitions.ts';

/** Times are ms since 1970. */
export interface VmRow {
  readonly id: number;
  readonly vm_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly instance_type: string;
  readonly region: string;
  readonly tags: string;
  readonly vcpus: number;
  readonly memory_mb: number;
  readonly disk_gb: number;
  /** Number of times its disk was replaced by a new one. */
  readonly rebuilds: number;
  /** Micro-credits per hour at creation. */
  readonly price_micro: number;
  readonly image_id: string;
  /** JSON array of OpenSSH public key lines. */
  readonly ssh_keys: string;
  readonly user_data: string | null;
  /** JSON array of the names of databases whose URIs the machine gets; null: none. */
  readonly databases: string | null;
  /** JSON array of guest ports. */
  readonly ports: string;
  readonly outbound: number;
  readonly uuid: string;
  readonly mac: string;
  readonly address: string | null;
  readonly state: VmState;
  readonly desired_state: 'running' | 'stopped' | 'deleted';
  readonly generation: number;
  readonly reason_code: string | null;
  readonly reason_message: string | null;
  readonly handle: string | null;
  readonly accel: string | null;
  readonly accel_reason: string | null;
  readonly state_changed_at: number;
  /** Set exactly while a run is counted: vm_usage has its `started` and not yet its `stopped`. */
  readonly started_at: number | null;
  readonly ready_at: number | null;
  readonly created_at: number;
  /** Price plan of the owner's account. */
  readonly plan: string;
  /** Number of its published ports. */
  readonly published: number;
  /** Number of its snapshots. */
  readonly snapshots: number;
  /** Size of its snapshots, each in whole GB. */
  readonly snapshot_gb: number;
}

/** The machine as its disk is charged, with its snapshots. */
export function billedDisk<Row extends Pick<VmRow, 'disk_gb' | 'snapshot_gb'>>(row: Row): Row {
  return { ...row, disk_gb: row.disk_gb + row.snapshot_gb };
}

export type UsageEvent = 'created' | 'started' | 'stopped' | 'deleted';

const COLUMNS = `id, vm_id, account_id, name, instance_type, region, tags, vcpus, memory_mb, disk_gb,
  rebuilds, price_micro, image_id, ssh_keys, user_data, databases, ports, outbound, uuid, mac, address, state, desired_state,
  generation, reason_code, reason_message, handle, accel, accel_reason, state_changed_at, started_at,
  ready_at, created_at, (SELECT plan FROM accounts WHERE accounts.id = account_id) AS plan,
  (SELECT count(*) FROM vm_ports WHERE vm_ports.vm_id = vms.vm_id) AS published,
  (SELECT count(*) FROM vm_snapshots WHERE vm_snapshots.vm_id = vms.vm_id) AS snapshots,
  (SELECT CAST(coalesce(sum((size_bytes + 1073741823) / 1073741824), 0) AS BIGINT) FROM vm_snapshots
    WHERE vm_snapshots.vm_id = vms.vm_id) AS snapshot_gb`;

/** Events kept per machine, so that frequent starts cannot fill the metadata. */
export const EVENTS_KEPT = 200;

export class VmStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(vmId: string): Awaitable<VmRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM vms WHERE vm_id = ?`, vmId);
  }

  /** Whether the account has that machine, or had it. */
  async wasOf(accountId: number, vmId: string): Promise<boolean> {
    const sql = 'SELECT 1 FROM vm_usage WHERE vm_id = ? AND account_id = ? LIMIT 1';
    const found: Awaitable<unknown> = this.#reads.get(sql, vmId, accountId);
    return (await found) !== undefined;
  }

  async hasRun(vmId: string): Promise<boolean> {
    const sql = "SELECT 1 FROM vm_usage WHERE vm_id = ? AND event = 'started' LIMIT 1";
    const found: Awaitable<unknown> = this.#reads.get(sql, vmId);
    return (await found) !== undefined;
  }

  /** Creation time of the account, ms; undefined: no such account. */
  async accountSince(accountId: number): Promise<number | undefined> {
    const sql = 'SELECT created_at FROM accounts WHERE id = ?';
    return (await this.#reads.get<{ created_at: number }>(sql, accountId))?.created_at;
  }

  /** Oldest first, after row id `after`. */
  listOf(accountId: number, after: number, limit: number): Awaitable<VmRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM vms WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  /** Machines of all accounts, oldest first, after row id `after`. */
  list(after: number, limit: number): Awaitable<VmRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM vms WHERE id > ? ORDER BY id LIMIT ?`, after, limit);
  }

  /** Machines of all accounts by state. */
  counts(): Awaitable<{ state: VmState; count: number }[]> {
    return this.#reads.all('SELECT state, count(*) AS count FROM vms GROUP BY state');
  }

  /** Machines of all accounts. */
  listRunning(): Awaitable<VmRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM vms WHERE state = 'running' ORDER BY id`);
  }

  /** Running machines with the columns that private networks need, oldest first. */
  listConnected(): Awaitable<Pick<VmRow, 'vm_id' | 'account_id' | 'name' | 'handle' | 'mac' | 'address'>[]> {
    return this.#reads.all(
      `SELECT vm_id, account_id, name, handle, mac, address FROM vms WHERE state = 'running' ORDER BY id`,
    );
  }

  /** All machines, also those that are being deleted. */
  owners(): Awaitable<Pick<VmRow, 'vm_id' | 'account_id'>[]> {
    return this.#reads.all('SELECT vm_id, account_id FROM vms ORDER BY id');
  }

  /** Machines that run or are between two states. */
  listActive(): Awaitable<VmRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM vms WHERE state NOT IN ('created', 'stopped', 'error') ORDER BY id`,
    );
  }

  /** Why the account's machines must not be started; null: no block. */
  async blockOf(accountId: number): Promise<AccountBlock | null> {
    const row = await this.#reads.get<{ is_active: number; closed_at: number | null }>(
      'SELECT is_active, closed_at FROM accounts WHERE id = ?',
      accountId,
    );
    if (row === undefined || row.closed_at !== null) return 'account_closed';
    return row.is_active === 0 ? 'account_suspended' : null;
  }

  /** Changes no row when the account is blocked. */
  expectNoBlock(accountId: number): Statement {
    return {
      sql: 'UPDATE accounts SET id = id WHERE id = ? AND is_active = 1',
      params: [accountId],
    };
  }

  /** Addresses in use, oldest machine first. */
  async addresses(): Promise<string[]> {
    const rows = await this.#reads.all<{ address: string }>(
      'SELECT address FROM vms WHERE address IS NOT NULL ORDER BY id',
    );
    return rows.map(({ address }) => address);
  }

  async isAddressTaken(address: string): Promise<boolean> {
    return (await this.#reads.get('SELECT 1 FROM vms WHERE address = ?', address)) !== undefined;
  }

  /** Last sample that showed the machine running since `since`. */
  async lastSeen(id: number, since: number): Promise<number | null> {
    const row = await this.#reads.get<{ at: number | null }>(
      'SELECT max(at) AS at FROM vm_samples WHERE vm = ? AND step_seconds = 5 AND at >= ?',
      id,
      since,
    );
    return row?.at ?? null;
  }

  insert(row: Omit<VmRow, 'id'>): Statement {
    return {
      sql: `INSERT INTO vms (vm_id, account_id, name, instance_type, region, tags, vcpus, memory_mb, disk_gb,
              price_micro, image_id, ssh_keys, user_data, databases, ports, outbound, uuid, mac, address, state,
              desired_state, generation, state_changed_at, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        ...[row.vm_id, row.account_id, row.name, row.instance_type, row.region, row.tags, row.vcpus],
        ...[
          row.memory_mb,
          row.disk_gb,
          row.price_micro,
          row.image_id,
          row.ssh_keys,
          row.user_data,
          row.databases,
        ],
        ...[row.ports, row.outbound, row.uuid, row.mac, row.address, row.state, row.desired_state],
        ...[row.generation, row.state_changed_at, row.created_at],
      ],
      tells: tellsOf(row),
    };
  }

  /** Changes no row unless its generation is the one before `row`'s. Ending a run clears ready_at. */
  update(row: VmRow): Statement {
    return {
      sql: `UPDATE vms SET address = ?, state = ?, desired_state = ?, generation = ?, reason_code = ?,
              reason_message = ?, handle = ?, accel = ?, accel_reason = ?, state_changed_at = ?,
              started_at = ?, ready_at = CASE WHEN ? THEN ready_at END
            WHERE id = ? AND generation = ?`,
      params: [
        ...[row.address, row.state, row.desired_state, row.generation, row.reason_code],
        ...[row.reason_message, row.handle, row.accel, row.accel_reason, row.state_changed_at],
        ...[row.started_at, row.started_at === null ? 0 : 1, row.id, row.generation - 1],
      ],
      tells: tellsOf(row),
    };
  }

  /**
   * Stores the given name and tags. Changes no row of a machine that is being deleted. Leaves the generation
   * alone, so that it disturbs no action in progress.
   */
  rename(row: VmIdentity, { name, tags }: { readonly name?: string; readonly tags?: string }): Statement {
    return {
      sql: `UPDATE vms SET name = COALESCE(?, name), tags = COALESCE(?, tags)
            WHERE vm_id = ? AND state <> 'deleting'`,
      params: [name ?? null, tags ?? null, row.vm_id],
      tells: tellsOf(row),
    };
  }

  /** Stores type and disk. Changes no row unless it is off and its generation is the one before `row`'s. */
  resize(row: VmRow): Statement {
    return {
      sql: `UPDATE vms SET instance_type = ?, vcpus = ?, memory_mb = ?, price_micro = ?, disk_gb = ?,
              generation = ? WHERE id = ? AND generation = ? AND state IN ('created', 'stopped')`,
      params: [
        ...[row.instance_type, row.vcpus, row.memory_mb, row.price_micro, row.disk_gb, row.generation],
        ...[row.id, row.generation - 1],
      ],
      tells: tellsOf(row),
    };
  }

  /**
   * Stores the image of a new disk. Changes no row unless it is off, without snapshots, and its generation is
   * the one before `row`'s.
   */
  rebuild(row: VmRow): Statement {
    return {
      sql: `UPDATE vms SET image_id = ?, rebuilds = ?, generation = ? WHERE id = ? AND generation = ?
              AND state IN ('created', 'stopped')
              AND NOT EXISTS (SELECT 1 FROM vm_snapshots WHERE vm_snapshots.vm_id = vms.vm_id)`,
      params: [row.image_id, row.rebuilds, row.generation, row.id, row.generation - 1],
      tells: tellsOf(row),
    };
  }

  /** Does nothing when the machine does not run or was ready already. */
  markReady(row: VmIdentity, at: number): Statement {
    return {
      sql: `UPDATE vms SET ready_at = ? WHERE vm_id = ? AND state = 'running' AND ready_at IS NULL`,
      params: [at, row.vm_id],
      tells: tellsOf(row),
    };
  }

  delete(row: VmRow): Statement {
    return { sql: 'DELETE FROM vms WHERE id = ?', params: [row.id], tells: tellsOf(row) };
  }

  usage(row: Omit<VmRow, 'id'>, event: UsageEvent, at: number): Statement {
    return {
      sql: `INSERT INTO vm_usage (vm_id, account_id, event, instance_type, price_micro, disk_gb, at)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      params: [row.vm_id, row.account_id, event, row.instance_type, row.price_micro, row.disk_gb, at],
    };
  }

  /** Removes all but the first event of a machine and the newest; bills are in the ledger. */
  forgetUsage(row: VmIdentity): Statement {
    return {
      sql: `DELETE FROM vm_usage WHERE vm_id = ? AND event <> 'created' AND id <= (
              SELECT id FROM vm_usage WHERE vm_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      params: [row.vm_id, row.vm_id, EVENTS_KEPT],
    };
  }
}

type VmIdentity = Pick<VmRow, 'vm_id' | 'account_id'>;

function tellsOf({ vm_id, account_id }: VmIdentity): ResourceChange {
  return { accountId: account_id, kind: 'vm', id: vm_id };
}
