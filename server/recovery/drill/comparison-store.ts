/** SQL that compares a recovery point with a restored cloud, by names that users know. */
import type { Reads } from '../../metadata/metadata.ts';

/** Tables that a restore changes before the first start (restored-store.ts, journal-store.ts). */
const CHANGED: ReadonlySet<string> = new Set([
  ...[
    'api_keys',
    'identity',
    'invitations',
    'job_runs',
    'migrations',
    'recovery_holds',
    'recovery_points',
    'secrets',
  ],
  ...['sessions', 'settings', 'setup_links', 'steady_clock'],
]);
const TABLE = /^[a-z_]+$/;

/** Texts by name. */
export type Named = ReadonlyMap<string, string>;

export class ComparisonStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Number of starts of the restored cloud on these files. */
  async starts(): Promise<number> {
    return Number((await this.#reads.get<{ starts: number }>('SELECT starts FROM identity'))?.starts ?? 0);
  }

  /** Rows of the tables that a restore does not change. */
  async tables(names: readonly string[]): Promise<Named> {
    const rows = new Map<string, string>();
    for (const name of names.filter((one) => TABLE.test(one) && !CHANGED.has(one))) {
      const found = await this.#reads.get<{ rows: number }>(`SELECT count(*) AS rows FROM ${name}`);
      rows.set(name, `${found?.rows} rows`);
    }
    return rows;
  }

  /** Credits and resource counts of each account. */
  accounts(): Promise<Named> {
    return this.#named(
      `SELECT username || ' (' || id || ')' AS name, (credits_micro / 1e6) || ' credits, ' || storage_bytes || ' bytes stored, ' ||
         (SELECT count(*) FROM buckets WHERE account_id = a.id) || ' buckets, ' ||
         (SELECT count(*) FROM vms WHERE account_id = a.id) || ' machines, ' ||
         (SELECT count(*) FROM databases WHERE account_id = a.id) || ' databases' AS text
       FROM accounts a ORDER BY id`,
    );
  }

  buckets(): Promise<Named> {
    return this.#named(
      `SELECT b.name || ' of ' || a.username AS name, (SELECT count(*) FROM objects WHERE bucket_id = b.id) || ' objects, ' ||
         (SELECT count(*) FROM versions v JOIN objects o ON o.id = v.object WHERE o.bucket_id = b.id) || ' versions, ' ||
         b.total_bytes || ' bytes' AS text
       FROM buckets b JOIN accounts a ON a.id = b.account_id ORDER BY b.id`,
    );
  }

  machines(): Promise<Named> {
    return this.#named(
      `SELECT v.name || ' of ' || a.username || ' (' || v.vm_id || ')' AS name, v.vcpus || ' CPUs, ' || v.memory_mb || ' MB, disk of ' ||
         v.disk_gb || ' GB' AS text
       FROM vms v JOIN accounts a ON a.id = v.account_id ORDER BY v.id`,
    );
  }

  databases(): Promise<Named> {
    return this.#named(
      `SELECT d.name || ' of ' || a.username || ' (' || d.database_id || ')' AS name, d.engine || ', ' || d.size_bytes || ' bytes' AS text
       FROM databases d JOIN accounts a ON a.id = d.account_id ORDER BY d.id`,
    );
  }

  /** An object with its bytes in that file; undefined: there is none. */
  async objectOf(blob: string): Promise<string | undefined> {
    const found = await this.#reads.get<{ name: string }>(
      `SELECT b.name || '/' || o.name || ' of ' || a.username AS name FROM blobs f JOIN versions v ON v.blob = f.id
         JOIN objects o ON o.id = v.object JOIN buckets b ON b.id = o.bucket_id JOIN accounts a ON a.id = b.account_id
       WHERE f.name = ? LIMIT 1`,
      blob,
    );
    return found?.name;
  }

  async #named(sql: string): Promise<Named> {
    const rows = await this.#reads.all<{ name: string; text: string }>(sql);
    return new Map(rows.map(({ name, text }) => [name, text]));
  }
}

/** Rejects with the names that differ. Resolves with the number of objects. */
export function sameNamed(point: Named, restored: Named): number {
  const wrong = [...point].flatMap(([name, text]) => {
    const found = restored.get(name);
    if (found === text) return [];
    return found === undefined ? `${name} is missing` : `${name}: ${text} in the point, ${found} restored`;
  });
  const more = [...restored.keys()]
    .filter((name) => !point.has(name))
    .map((name) => `${name} is not in the point`);
  if (wrong.length + more.length > 0) throw new Error([...wrong, ...more].join('\n'));
  return point.size;
}
