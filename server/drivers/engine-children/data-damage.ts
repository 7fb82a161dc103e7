/** Stored data that changed by itself, as a child finds it: an error, and word of it to Cloudlet. */
import { isCorrupt } from './sqlite-error.ts';

/** MongoDB's name for it. */
const DAMAGE_CODE = 'DataCorruptionDetected';

/** What is stored is not what was written. */
export class DamagedData extends Error {
  readonly codeName = DAMAGE_CODE;
}

export function isDamage(error: unknown): boolean {
  return (error as { codeName?: unknown }).codeName === DAMAGE_CODE || isCorrupt(error);
}

/** Where word of damage goes; of this process. */
export const damageWatch = { tell: (_what: string): void => {} };

/** Tells Cloudlet when an error, or a reply of MongoDB's, is damage, whatever the client is answered. */
export function noteDamage(error: unknown): void {
  if (!isDamage(error)) return;
  const { message, errmsg } = error as { message?: string; errmsg?: string };
  damageWatch.tell(message ?? errmsg ?? '');
}
