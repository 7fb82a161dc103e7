/** Corrupt data found by a child: an error, and a report to Cloudlet. */
import { isCorrupt } from './sqlite-error.ts';

/** MongoDB's error name. */
const DAMAGE_CODE = 'DataCorruptionDetected';

/** Stored data is not what was written. */
export class DamagedData extends Error {
  readonly codeName = DAMAGE_CODE;
}

export function isDamage(error: unknown): boolean {
  return (error as { codeName?: unknown }).codeName === DAMAGE_CODE || isCorrupt(error);
}

/** Receiver of damage reports in this process. */
export const damageWatch = { tell: (_what: string): void => {} };

/** Reports an error or a MongoDB reply that means damage, whatever the client gets. */
export function noteDamage(error: unknown): void {
  if (!isDamage(error)) return;
  const { message, errmsg } = error as { message?: string; errmsg?: string };
  damageWatch.tell(message ?? errmsg ?? '');
}
