/** `cloudlet keys rotate`. */
import type { Config } from '../config.ts';
import { asOperator } from './operator-call.ts';
import { UsageError } from './usage.ts';

const HELP = `Usage: cloudlet keys rotate

Makes a new master key, seals every stored secret and data key under it, and retires the old one. Objects
are not rewritten. Interrupted, it may simply be run again. Keep a copy of master.key with your backups.
`;

export async function runKeys(config: Config, args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    console.log(HELP);
    return 0;
  }
  if (args.length !== 1 || args[0] !== 'rotate')
    throw new UsageError('keys: expected rotate; see cloudlet keys --help');
  const path = '/api/admin/master-key/rotate';
  const { key_id, resealed } = await asOperator(config, (call) =>
    call<{ key_id: string; resealed: number }>({ method: 'POST', path }),
  );
  console.log(`Master key ${key_id} is in use; ${resealed} secrets were sealed under it`);
  return 0;
}
