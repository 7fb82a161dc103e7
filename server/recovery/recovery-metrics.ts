/** The series of recovery, for Prometheus. */
import type { Meters } from '../platform/prometheus.ts';
import type { RecoveryWatch } from './schedule/watch.ts';

export function meterRecovery(meters: Meters, watch: Pick<RecoveryWatch, 'figures'>): void {
  const gauge = (name: string, help: string, read: () => number) =>
    meters.gauge(`cloudlet_recovery_${name}`, { help, type: 'gauge', read });
  gauge('points', 'Recovery points that can be restored', () => watch.figures().points);
  gauge(
    'point_age_seconds',
    'Age of the newest recovery point that can be restored',
    () => watch.figures().ageSeconds,
  );
  gauge(
    'rpo_seconds',
    'Age of the recovery point that a restore would use (data loss if the cloud were lost now)',
    () => watch.figures().latestAgeSeconds,
  );
  gauge('drill_age_seconds', 'Time since a restore drill last passed', () => watch.figures().drillAgeSeconds);
  gauge('target_up', '1 if the recovery repository answered the last check', () =>
    flag(watch.figures().isTargetUp),
  );
  gauge('target_free_bytes', 'Free space of the recovery repository', () => watch.figures().freeBytes);
  gauge('key_taken', '1 once an administrator has confirmed the recovery key', () =>
    flag(watch.figures().isKeyTaken),
  );
}

/** Unknown values have no sample: a new cloud has no repository, and no recovery key. */
const flag = (isSo: boolean | null) => (isSo === null ? Number.NaN : Number(isSo));
