/** What loads that were cut off left in a database server: databases of names of ours that nobody has. */
import type { ManagedServerDeps } from './managed-server.ts';

export interface LeftoversDeps extends Pick<ManagedServerDeps, 'alarms' | 'warn'> {
  /** `mysql`. */
  readonly name: string;
  /** For humans. */
  readonly title: string;
  /** What an operator may do about one that stays. */
  readonly fix: string;
}

/** Removes each. One that cannot be removed stays aside, in nobody's way, and is told. Never rejects. */
export async function removeLeftovers(
  names: readonly string[],
  remove: (name: string) => Promise<void>,
  { name: engine, title, fix, alarms, warn }: LeftoversDeps,
): Promise<void> {
  const code = `${engine}_leftovers`;
  const left: string[] = [];
  for (const name of names) {
    try {
      await remove(name);
    } catch (error) {
      left.push(name);
      warn(`${name}, which a load that was cut off left in ${title}, could not be removed: ${error}`);
    }
  }
  const detail = `Left-overs of loads that were cut off cannot be removed from ${title}: ${left.join(', ')}`;
  if (left.length > 0) alarms.raise(code, detail, fix);
  else alarms.clear(code);
}
