/** Restore drills of recovery points, one at a time: on request and scheduled. */
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { invalidField, isAppError } from '../../platform/errors.ts';
import type { LogArchive } from '../logs/log-archive.ts';
import type { PointEvents } from '../points/point-view.ts';
import type { KeySlot } from '../repository/key-slot.ts';
import { readRecoveryKey } from '../repository/recovery-keys.ts';
import type { RepositoryKeys } from '../repository/repository-head.ts';
import type { PointRow, RecoveryStore } from '../store.ts';
import {
  type ChainHead,
  type DrillCheck,
  type DrillFindings,
  type DrillGround,
  type DrillRecord,
  type DrillRequest,
  DrillSkipped,
} from './drill.ts';
import type { DrillStore } from './drill-store.ts';
import { PointWork } from './point-work.ts';

export interface DrillsDeps {
  readonly store: RecoveryStore;
  readonly drillStore: DrillStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly news: PointEvents;
  readonly ground: DrillGround;
  readonly slot: KeySlot;
  /** Keys of the repository with the points. Throws `target_unavailable`. */
  readonly keys: () => Promise<RepositoryKeys>;
  /** Name of this cloud, as in manifests. */
  readonly cloud: () => Promise<string>;
  /** Hash of the entry in this cloud's chain; null: there is none. */
  readonly chainHash: (link: Pick<ChainHead, 'chain' | 'number'>) => Promise<string | null>;
  readonly logs: Pick<LogArchive, 'heads' | 'note'>;
  /** Path of the target. */
  readonly location: string;
  /** Interval of scheduled drills, ms; 0: none. */
  readonly everyMs: number;
  readonly onError: (pointId: string, error: unknown) => void;
  /** Called when a drill has ended. */
  readonly onEnd: () => void;
}

interface Asked {
  readonly pointId: string;
  readonly keys: RepositoryKeys;
  readonly heads: DrillRequest['heads'];
  /** The recovery key as typed. */
  readonly typed: string | undefined;
}

export class Drills {
  readonly #deps: DrillsDeps;
  /** Progress is the stage of the drill. */
  readonly work: PointWork<string>;

  constructor(deps: DrillsDeps) {
    this.#deps = deps;
    const { onError, onEnd } = deps;
    this.work = new PointWork({ noun: 'drill', participle: 'drilled', first: 'preparing', onError, onEnd });
  }

  /** Removes the files of killed drills. */
  sweep(): Promise<void> {
    return this.#deps.ground.sweep();
  }

  /**
   * Drills the newest intact point, unless any point was drilled, or a drill was tried, within the
   * interval.
   */
  async tick(): Promise<void> {
    const { store, clock, location, everyMs } = this.#deps;
    if (everyMs === 0 || this.work.isBusy) return;
    const tried = (await store.listAt(location)).map(({ drill }) =>
      drill === null ? 0 : (JSON.parse(drill) as DrillRecord).started_at,
    );
    if (clock.now() - Math.max(0, ...tried) < everyMs) return;
    const newest = await store.newestSound(location);
    if (newest !== undefined) await this.begin(newest);
  }

  /**
   * Starts a drill; does nothing if the point is being drilled already. `typed`: the recovery key,
   * to prove that it opens the repository. Throws `point_invalid_state`, `point_in_progress` if
   * another point is being drilled, `invalid_request` for a mistyped key, `target_unavailable`.
   */
  async begin(row: PointRow, typed?: string): Promise<void> {
    assertKey(typed);
    const { point_id: pointId } = row;
    const { store, logs, location } = this.#deps;
    await this.work.begin(row, async () => {
      const keys = await this.#deps.keys();
      const heads = (await store.isNewest(location, pointId)) ? logs.heads() : null;
      return (signal) => this.#drill({ pointId, keys, heads, typed }, signal);
    });
  }

  async #drill(asked: Asked, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const startedAt = clock.now();
    const began = clock.monotonic();
    const outcome = await this.#outcome(asked, signal);
    if (outcome === null) return;
    const seconds = Math.round((clock.monotonic() - began) / 100) / 10;
    await this.#store(asked.pointId, { ...outcome, started_at: startedAt, seconds });
  }

  /** null: the drill was cancelled. */
  async #outcome(
    { pointId, keys, heads, typed }: Asked,
    signal: AbortSignal,
  ): Promise<Omit<Outcome, 'started_at' | 'seconds'> | null> {
    const { ground, slot, logs } = this.#deps;
    const none = { checks: [], findings: null };
    try {
      const slotCheck = await slot.check(keys.repositoryId, typed);
      const request = {
        pointId,
        repositoryId: keys.repositoryId,
        repositoryKey: Buffer.from(keys.key).toString('hex'),
        heads,
      };
      const onStage = (stage: string) => this.work.note(stage);
      const findings = await ground.run(request, { signal, onStage });
      if (findings.logs !== null) await logs.note(findings.logs);
      const checks = [slotCheck, ...findings.checks, ...(await this.#compareChains(findings))];
      const failed = checks.filter(({ state }) => state === 'failed');
      const reason = failed.length === 0 ? null : failed.map(({ name }) => name).join(', ');
      return reason === null
        ? { result: 'passed', reason, checks, findings }
        : {
            result: 'failed',
            reason: `The restored cloud differs or is damaged: ${reason}`,
            checks,
            findings,
          };
    } catch (error) {
      if (signal.aborted) return null;
      if (error instanceof DrillSkipped) return { result: 'skipped', reason: error.message, ...none };
      this.#deps.onError(pointId, error);
      const why = error instanceof Error ? error.message : String(error);
      return { result: 'failed', reason: `The drill failed: ${why}`, ...none };
    }
  }

  /** Verifies that the chains of the recovery point are a prefix of this cloud's chains. */
  async #compareChains({ cloud, chainHeads }: DrillFindings): Promise<DrillCheck[]> {
    if (chainHeads.length === 0 || cloud !== (await this.#deps.cloud())) return [];
    const checks: DrillCheck[] = [];
    for (const head of chainHeads) {
      const hash = await this.#deps.chainHash(head);
      const name = `${head.chain} of this cloud`;
      checks.push(
        hash === head.hash
          ? { name, state: 'passed', detail: `has the same ${LINKS[head.chain]} ${head.number}` }
          : { name, state: 'failed', detail: differs(head, hash) },
      );
    }
    return checks;
  }

  async #store(pointId: string, { findings, ...record }: Outcome): Promise<void> {
    const { store, drillStore, changes, clock, news } = this.#deps;
    await changes.run(BACKGROUND, async (change) => {
      const verdict = findings?.verdict;
      const isDamaged = verdict !== undefined && verdict.damagedFiles > 0;
      // All data was read: damage found earlier is gone.
      const isRead = isDamaged || record.result === 'passed';
      if (isRead && verdict !== undefined) change.add(store.setVerdict(pointId, verdict, clock.now()));
      change.add(drillStore.record(pointId, record, clock.now()));
      const row = await store.find(pointId);
      if (row === undefined) return;
      if (isDamaged) change.addAll(await news.of('recovery_point.damaged', { ...row, state: 'damaged' }));
      const shown: PointRow = { ...row, drill: JSON.stringify(record) };
      if (record.result === 'passed')
        change.addAll(await news.of('recovery_point.drilled', { ...shown, state: 'drilled' }));
      else if (record.result === 'skipped')
        change.addAll(await news.of('recovery_point.drill_skipped', shown));
      else change.addAll(await news.of('recovery_point.drill_failed', shown));
    });
  }
}

interface Outcome extends DrillRecord {
  readonly findings: DrillFindings | null;
}

const LINKS = { ledger: 'transfer', 'audit log': 'range' };

function differs({ chain, number, hash }: ChainHead, found: string | null): string {
  const link = `${LINKS[chain]} ${number}`;
  if (found === null) return `has no ${link}, the last one of the point`;
  return `${link} has the hash ${found}, in the point ${hash}`;
}

function assertKey(typed: string | undefined): void {
  if (typed === undefined) return;
  try {
    readRecoveryKey(typed);
  } catch (error) {
    if (isAppError(error)) throw error;
    throw invalidField('recovery_key', (error as Error).message);
  }
}
