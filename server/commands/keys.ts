/** `cloudlet keys rotate`. */
import type { Config } from '../config/config.ts';
import { plural } from '../platform/plural.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { asOperator } from './operator-call.ts';

const HELP = `Usage: cloudlet keys rotate

Makes a new master key, seals every stored secret and data key under it, and retires the old one. Objects
are not rewritten. Interrupted, it may simply be run again. Keep a copy of master.key with your backups.
`;

export const KEYS: Command = { help: HELP, run: rotate };

async function rotate(config: Config, { positionals }: Words): Promise<number> {
  if (positionals.join(' ') !== 'rotate')
    throw new UsageError('keys: expected rotate; see cloudlet keys --help');
  const path = '/api/admin/master-key/rotate';
  const { key_id, resealed } = await asOperator(config, (call) => {
    console.log('Sealing every secret under a new key. It waits 10 s for calls under way.');
    return call<{ key_id: string; resealed: number }>({ method: 'POST', path });
  });
  console.log(`Master key ${key_id} is in use, with ${plural(resealed, 'secret')} sealed under it`);
  return 0;
}
