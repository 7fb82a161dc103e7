/**
 * Reads and verifies every stored byte, so that damage is found while a copy may still exist.
 * Progress survives a restart. Damaged versions are marked, listed in the status, and never sent.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Changes } from '../../metadata/change.ts';
import type { JobRuns } from '../../metadata/job-runs-store.ts';
import type { Alarms } from '../../platform/alarms.ts';
import { type Clock, formatTimeOrNull } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import type { DataKeys } from '../keys/encryption.ts';
import { openInline } from '../uploads/upload.ts';
import type { BlobRow, BlobSql, DamageRow } from './blob-sql.ts';
import type { BlobStore } from './blobs.ts';
import type { RowCheck } from './row-check.ts';
import type { DamagedBucketRow } from './row-check-sql.ts';

export interface ScrubberDeps {
  readonly changes: Changes;
  readonly store: BlobSql;
  readonly blobs: BlobStore;
  readonly runs: JobRuns;
  readonly alarms: Alarms;
  readonly clock: Clock;
  readonly dataKeys: Pick<DataKeys, 'open'>;
  readonly rowCheck: RowCheck;
  /** The damage of the metadata; null: none found. */
  readonly metadataDamage: () => Promise<string | null>;
}

/** Data of another domain that the scrub verifies too. */
export interface OtherData {
  /** Verifies all of the data; resolves to the number of items. Throws the abort reason of `signal`. */
  run(signal: AbortSignal): Promise<number>;
  /** Problems, by the id of the damaged item. */
  damage(): ReadonlyMap<string, string>;
}

interface Progress {
  readonly checkedBlobs: number;
  readonly checkedBytes: number;
  readonly damagedBlobs: number;
  /** Missing in states of versions that did not verify databases. */
  readonly checkedDatabases?: number;
  /** Missing in states of versions that did not verify rows of objects. */
  readonly checkedRows?: number;
  /** Missing in states of versions that did not verify rows of buckets. */
  readonly checkedBuckets?: number;
}

export interface ScrubStatus {
  readonly running: boolean;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly checked_blobs: number;
  readonly checked_bytes: number;
  readonly damaged_blobs: number;
  readonly checked_rows: number;
  readonly damaged_rows: number;
  readonly checked_buckets: number;
  readonly checked_databases: number;
}

const JOB = 'scrub';
const PAGE = 100;
const DAMAGE_SHOWN = 100;

export class Scrubber {
  readonly #deps: ScrubberDeps;
  #running = false;
  #databases: OtherData | null = null;
  readonly #stop = new AbortController();

  constructor(deps: ScrubberDeps) {
    this.#deps = deps;
  }

  /** Adds data that runs verify after the blobs. */
  join(databases: OtherData): void {
    this.#databases = databases;
  }

  /** Stops the current run; the next one continues. */
  stop(): void {
    this.#stop.abort(new AppError('shutting_down', 'Cloudlet is stopping'));
  }

  /** Raises the alarm again for damage found by an earlier run. */
  async start(): Promise<void> {
    await this.#tellAlarm();
  }

  /** When the last full run finished, ms, or null. */
  async lastFinishedAt(): Promise<number | null> {
    return (await this.#deps.runs.read<Progress>(JOB))?.finishedAt ?? null;
  }

  async status(): Promise<ScrubStatus> {
    const run = await this.#deps.runs.read<Progress>(JOB);
    return {
      running: this.#running,
      started_at: formatTimeOrNull(run?.startedAt ?? null),
      finished_at: formatTimeOrNull(run?.finishedAt ?? null),
      checked_blobs: run?.state.checkedBlobs ?? 0,
      checked_bytes: run?.state.checkedBytes ?? 0,
      damaged_blobs: await this.#deps.store.countDamaged(),
      checked_rows: run?.state.checkedRows ?? 0,
      damaged_rows: await this.#deps.rowCheck.countDamaged(),
      checked_buckets: run?.state.checkedBuckets ?? 0,
      checked_databases: run?.state.checkedDatabases ?? 0,
    };
  }

  /** The object versions known to be damaged, at most 100. */
  async damage(): Promise<DamageRow[]> {
    return this.#deps.store.damage(DAMAGE_SHOWN);
  }

  /** The buckets whose rows are known to be damaged, at most 100. */
  async bucketDamage(): Promise<DamagedBucketRow[]> {
    return this.#deps.rowCheck.damagedBuckets(DAMAGE_SHOWN);
  }

  /** Marks a blob, by its row id, as damaged and raises the alarm, after a reader has found the damage. */
  async noteDamaged(blob: number): Promise<void> {
    const { changes, store, clock } = this.#deps;
    await changes.store([store.setDamaged(blob, clock.now())]);
    await this.#tellAlarm();
  }

  /** Like the method above, for the row of a version. */
  async noteDamagedRow(version: number): Promise<void> {
    await this.#deps.rowCheck.look(version);
    await this.#tellAlarm();
  }

  /** Like the method above, for the row of a bucket. */
  async noteDamagedBucket(bucket: number): Promise<void> {
    await this.#deps.rowCheck.lookAtBucket(bucket);
    await this.#tellAlarm();
  }

  /** The databases known to be damaged. */
  databaseDamage(): { database_id: string; problem: string }[] {
    const found = this.#databases?.damage() ?? new Map<string, string>();
    return [...found].slice(0, DAMAGE_SHOWN).map(([database_id, problem]) => ({ database_id, problem }));
  }

  /**
   * Verifies everything at no more than `bytesPerSecond`. Resolves at the end. Throws `job_running`. `fresh`
   * starts over even if an interrupted run could continue.
   */
  async run(options: { bytesPerSecond: number; fresh: boolean }): Promise<void> {
    if (this.#running) throw new AppError('job_running', 'A scrub is already running; see the system status');
    this.#running = true;
    try {
      await this.#walk(options);
    } finally {
      this.#running = false;
      await this.#tellAlarm();
    }
  }

  async #walk({ bytesPerSecond, fresh }: { bytesPerSecond: number; fresh: boolean }): Promise<void> {
    const { runs, store, clock } = this.#deps;
    const earlier = await runs.read<Progress>(JOB);
    const resumes = !fresh && earlier !== undefined && earlier.finishedAt === null;
    const startedAt = resumes ? earlier.startedAt : clock.now();
    let after = resumes ? Number(earlier.cursor ?? 0) : 0;
    let progress: Progress = resumes ? earlier.state : { checkedBlobs: 0, checkedBytes: 0, damagedBlobs: 0 };
    const began = clock.monotonic();
    let paced = 0;
    for (;;) {
      await runs.write(JOB, { startedAt, finishedAt: null, state: progress, cursor: String(after) });
      const page = await store.page(after, PAGE);
      for (const blob of page) {
        const sound = await this.#check(blob);
        progress = {
          checkedBlobs: progress.checkedBlobs + 1,
          checkedBytes: progress.checkedBytes + blob.size_bytes,
          damagedBlobs: progress.damagedBlobs + (sound ? 0 : 1),
        };
        after = blob.id;
        paced += blob.size_bytes;
        const aheadMs = (paced / bytesPerSecond) * 1000 - (clock.monotonic() - began);
        if (aheadMs > 0) await this.#pause(aheadMs);
      }
      if (page.length === 0) break;
      await new Promise(setImmediate);
      this.#stop.signal.throwIfAborted();
    }
    const rows = await this.#deps.rowCheck.run(this.#stop.signal);
    await this.#checkMetadata();
    const checkedDatabases = (await this.#databases?.run(this.#stop.signal)) ?? 0;
    const checked = { checkedRows: rows.versions, checkedBuckets: rows.buckets, checkedDatabases };
    const state = { ...progress, ...checked };
    await runs.write(JOB, { startedAt, finishedAt: clock.now(), state, cursor: null });
  }

  async #checkMetadata(): Promise<void> {
    const { metadataDamage, alarms } = this.#deps;
    const damage = await metadataDamage();
    const fix = 'Check the disk, then restore the latest intact recovery point into an empty directory';
    if (damage === null) alarms.clear('metadata_damaged');
    else alarms.raise('metadata_damaged', `The metadata database is damaged: ${damage}`, fix);
  }

  /** Throws the reason if the scrub is stopped during the pause. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#stop;
    await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
  }

  /** True if the blob is intact, or was deleted in the meantime. Updates its damage mark. */
  async #check(blob: BlobRow): Promise<boolean> {
    const { changes, store, clock } = this.#deps;
    const sound = await this.#verify(blob);
    if (!sound && !(await store.stillNamed(blob.id))) return true;
    if (sound !== (blob.damaged_at === null)) {
      await changes.store([store.setDamaged(blob.id, sound ? null : clock.now())]);
    }
    return sound;
  }

  async #verify(blob: BlobRow): Promise<boolean> {
    try {
      const dataKey = await this.#deps.dataKeys.open(blob);
      if (blob.data) {
        openInline(blob.data, blob.checksum, dataKey);
      } else if (blob.name !== null) {
        const reader = { sink: () => undefined, signal: this.#stop.signal };
        const ref = { name: blob.name, sizeBytes: blob.size_bytes, dataKey };
        await this.#deps.blobs.read(ref, { start: 0, end: blob.size_bytes }, reader);
      }
      return true;
    } catch (error) {
      if (isAppError(error, 'data_corrupted')) return false;
      throw error;
    }
  }

  async #tellAlarm(): Promise<void> {
    const blobs = await this.#deps.store.countDamaged();
    const rows = await this.#deps.rowCheck.countDamaged();
    const buckets = await this.#deps.rowCheck.countDamagedBuckets();
    const said = [
      ...(blobs > 0 ? [`${blobs} stored blobs`] : []),
      ...(rows > 0 ? [`the metadata of ${rows} object versions`] : []),
      ...(buckets > 0 ? [`the settings of ${buckets} buckets`] : []),
    ];
    if (said.length === 0) this.#deps.alarms.clear('damaged_objects');
    else
      this.#deps.alarms.raise(
        'damaged_objects',
        `${said.join(' and ')} are damaged`,
        'Run `cloudlet scrub`, which names the objects and buckets, and store them again; a recovery point may have intact copies',
      );
  }
}
