/** Reads the archived logs of database servers in a restore drill. */
import { systemClock } from '../../platform/clock.ts';
import { plural } from '../../platform/plural.ts';
import { type LogVerdict, type LogVerifyOptions, verifyLogs } from '../logs/log-verification.ts';
import { CheckSkipped, type DrillChecks, inMib } from './drill-checks.ts';

/** `withinMs`: time limit for reading. null: there are no logs. */
export async function readLogs(
  checks: DrillChecks,
  options: Omit<LogVerifyOptions, 'isLate'> & { readonly withinMs: number },
): Promise<LogVerdict | null> {
  const end = systemClock.uptime() + options.withinMs;
  const isLate = () => systemClock.uptime() > end;
  const verdict = await verifyLogs({ ...options, isQuick: true, isLate });
  const { servers, bases, parts, bytes, unread, damage, damagedFiles } = verdict;
  if (servers === 0) return null;
  await checks.run('archived logs', async () => {
    if (damagedFiles > 0) {
      const [first] = damage;
      const files = plural(damagedFiles, 'file');
      throw new Error(`${files} missing or damaged, the first is ${first?.file} (${first?.problem})`);
    }
    const copies = bases === 1 ? '1 base copy' : `${bases} base copies`;
    const read = `${copies} and ${plural(parts, 'part')} of the logs of ${plural(servers, 'server')}`;
    if (unread > 0)
      throw new CheckSkipped(`${read} are intact; there was no time for ${plural(unread, 'file')}`);
    return `${read} are intact (${inMib(bytes)})`;
  });
  return verdict;
}
