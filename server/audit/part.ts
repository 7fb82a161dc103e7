/** Builds the audit log. */
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import { AuditLog } from './audit-log.ts';
import { exportedAudit } from './exported-audit.ts';
import { auditRoutes } from './routes.ts';
import { Seals } from './seals.ts';
import { AuditStore } from './store.ts';
import { Trail } from './trail.ts';

const FLUSH_MS = 500;
const SEAL_MS = 60_000;
const SWEEP_MS = 3_600_000;

export function auditPart({ metadata, clock }: { readonly metadata: Metadata; readonly clock: Clock }) {
  const store = new AuditStore(metadata);
  const shared = { changes: new Changes({ metadata }), store, clock };
  const trail = new Trail(shared);
  const seals = new Seals(shared);
  const jobs: Job[] = [
    { name: 'store noted audit entries', everyMs: FLUSH_MS, per: 'node', run: () => trail.flush() },
    { name: 'seal the audit log', everyMs: SEAL_MS, per: 'cluster', run: () => seals.seal() },
    { name: 'sweep the audit log', everyMs: SWEEP_MS, per: 'cluster', run: () => seals.sweep() },
  ];
  return {
    trail,
    announceBy: trail.announceBy.bind(trail),
    routes: auditRoutes({ log: new AuditLog(store), reads: metadata }),
    exported: exportedAudit(metadata),
    jobs,
    stop: () => seals.stop(),
    flush: () => trail.flush({ all: true }),
  };
}
