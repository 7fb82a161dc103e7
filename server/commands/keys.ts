/** `cloudlet keys rotate`. */
import type { Config } from '../config/config.ts';
import { plural } from '../platform/plural.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { asOperator } from './operator-call.ts';

const HELP = `Usage: cloudlet keys rotate

Creates a new master key, re-encrypts all stored secrets and data keys with it, and retires the old key.
Objects are not rewritten. If interrupted, run the command again. Keep a copy of master.key with your backups.
`;

export const KEYS: Command = { help: HELP, run: rotate };

async function rotate(config: Config, { positionals }: Words): Promise<number> {
  if (positionals.join(' ') !== 'rotate')
    throw new UsageError(
      'keys: expected rotate; `cloudlet key ls` lists access keys; see cloudlet keys --help',
    );
  const path = '/api/admin/master-key/rotate';
  const { key_id, resealed } = await asOperator(config, (call) => {
    console.log('Re-encrypting all secrets with a new key. This waits 10 s for requests in progress.');
    return call<{ key_id: string; resealed: number }>({ method: 'POST', path });
  });
  console.log(`Master key ${key_id} is in use; ${plural(resealed, 'secret')} re-encrypted`);
  return 0;
}
