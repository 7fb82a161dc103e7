/**
 * Fills the database of a stopped cloud with the data of months of billing: a chain of transfers, windows,
 * and running machines. The rows are those that ratings write; creating a million of these would take hours.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';

export interface BillingFilling {
  readonly transfers: number;
  readonly accounts: number;
  /** The first account's share of the transfers; that account has machines of a whole month. */
  readonly ofFirst: number;
  /** Running machines, of all accounts in turn. */
  readonly machines: number;
}

const HOUR_MS = 3_600_000;
const MONTH_HOURS = 720;
const MACHINES_OF_FIRST = 20;
const COST_MICRO = 11_600;

/** Returns the id of the first account. The cloud must have no account except its administrator. */
export function fillBilling(dataDir: string, filling: BillingFilling, now: number): number {
  const database = new Database(join(dataDir, 'metadata.db'));
  // Not durable while it is filled, which is not measured.
  for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -262144']) {
    database.pragma(pragma);
  }
  try {
    const first = database.transaction(() => {
      const ids = insertAccounts(database, filling.accounts);
      insertTransfers(database, filling, { ids, now });
      insertWindows(database, ids[0] ?? 0, now);
      insertMachines(database, filling.machines, { ids, now });
      return ids[0] ?? 0;
    })();
    database.pragma('journal_mode = WAL');
    return first;
  } finally {
    database.close();
  }
}

function insertAccounts(database: Database.Database, count: number): number[] {
  const insert = database.prepare(
    `INSERT INTO accounts (username, username_folded, email, password_hash, created_at) VALUES (?, ?, '', '', 0)`,
  );
  return Array.from({ length: count }, (_, i) =>
    Number(insert.run(`bench-${i}`, `bench-${i}`).lastInsertRowid),
  );
}

interface Moment {
  readonly ids: readonly number[];
  readonly now: number;
}

/** Each account is granted the sum of all its later transfers, and is left with a thousand credits. */
function insertTransfers(database: Database.Database, filling: BillingFilling, { ids, now }: Moment): void {
  const insert = database.prepare(
    `INSERT INTO ledger_transfers
       (seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, hash)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const last = database
    .prepare<[], { seq: number; hash: string }>(
      'SELECT seq, hash FROM ledger_transfers ORDER BY seq DESC LIMIT 1',
    )
    .get();
  let seq = last?.seq ?? 0;
  let previous = last?.hash ?? '0'.repeat(64);
  const begin = now - MONTH_HOURS * HOUR_MS;
  const book = (row: readonly (string | number)[]) => {
    seq++;
    const fields = [previous, seq, ...row];
    const text = fields.map((field) => `${Buffer.byteLength(String(field))}:${field},`).join('');
    const hash = createHash('sha256').update(text).digest('hex');
    insert.run(seq, ...row, previous, hash);
    previous = hash;
  };
  const used = new Map<number, number>();
  const grants = 1e12;
  for (const id of ids)
    book([`g-${id}`, 'system:grants', `account:${id}`, grants, 'signup_grant', '', begin]);
  const rest = filling.transfers - ids.length;
  for (let i = 0; i < rest; i++) {
    const isOfFirst = i % Math.max(1, Math.floor(rest / filling.ofFirst)) === 0;
    const id = (isOfFirst ? ids[0] : ids[i % ids.length]) ?? 0;
    const at = begin + Math.floor((i / rest) * MONTH_HOURS) * HOUR_MS;
    const sides = [`account:${id}`, 'system:revenue-compute', COST_MICRO];
    book([`usage-${id}-b${i}-compute-free`, ...sides, 'usage', `compute of account:${id}`, at]);
    used.set(id, (used.get(id) ?? 0) + COST_MICRO);
  }
  const balance = database.prepare('UPDATE accounts SET credits_micro = ? WHERE id = ?');
  for (const id of ids) balance.run(BigInt(grants - (used.get(id) ?? 0)), id);
  // The usage of one machine in one window represents all of an account except the first, whose month is
  // complete.
  const window = database.prepare(
    `INSERT INTO usage_windows (account_id, window_start, meter, resource_id, name, variant, price_nano,
       quantity, cost_micro) VALUES (?, ?, 'vm.time', ?, 'web', 't2.micro', 11600000, 3600000, ?)`,
  );
  const oldest = Math.floor((begin - 400 * 24 * HOUR_MS) / HOUR_MS) * HOUR_MS;
  for (const id of ids) {
    const ofMonth = id === ids[0] ? MACHINES_OF_FIRST * MONTH_HOURS * COST_MICRO : 0;
    window.run(id, oldest, 'vm-before', BigInt((used.get(id) ?? 0) - ofMonth));
  }
}

function insertWindows(database: Database.Database, account: number, now: number): void {
  const insert = database.prepare(
    `INSERT INTO usage_windows (account_id, window_start, meter, resource_id, name, variant, price_nano,
       quantity, cost_micro) VALUES (?, ?, 'vm.time', ?, 'web', 't2.micro', 11600000, 3600000, ${COST_MICRO})`,
  );
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  for (let back = MONTH_HOURS; back > 0; back--) {
    for (let machine = 0; machine < MACHINES_OF_FIRST; machine++) {
      insert.run(account, hour - back * HOUR_MS, `vm-of-first-${machine}`);
    }
  }
}

function insertMachines(database: Database.Database, count: number, { ids, now }: Moment): void {
  const insert = database.prepare(
    `INSERT INTO usage_lines (meter, resource_id, account_id, name, variant, level, level_since, settled_to)
     VALUES (?, ?, ?, 'web', 't2.micro', ?, ?, ?)`,
  );
  const machine = database.prepare(
    `INSERT INTO vms (vm_id, account_id, name, instance_type, region, tags, vcpus, memory_mb, disk_gb,
       price_micro, image_id, ssh_keys, ports, outbound, uuid, mac, state, desired_state, state_changed_at,
       created_at, started_at)
     VALUES (?, ?, 'web', 't2.micro', 'r', '', 1, 1024, 30, ${COST_MICRO}, 'tiny', '[]', '[]', 0, ?, ?,
       'running', 'running', 0, 0, ?)`,
  );
  for (let i = 0; i < count; i++) {
    const id = ids[i % ids.length] ?? 0;
    machine.run(`vm-line-${i}`, id, `u${i}`, `m${i}`, now);
    insert.run('vm.time', `vm-line-${i}`, id, 1, now, now);
    insert.run('vm.disk', `vm-line-${i}`, id, 30, now, now);
  }
}
