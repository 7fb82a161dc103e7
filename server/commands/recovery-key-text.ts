/** The recovery key of a command that has no running cloud to ask. */
import { readFileSync } from 'node:fs';
import { readRecoveryKey } from '../recovery/recovery-key.ts';
import { ask } from './ask.ts';

/** From the file, or from who sits there. */
export async function givenRecoveryKey(file: string | undefined): Promise<Buffer> {
  if (file !== undefined) return readRecoveryKey(readFileSync(file, 'utf8'));
  const typed = await ask('The recovery key: ');
  if (typed === '') throw new Error('a recovery key is needed: type it, or name a file with --key-file');
  return readRecoveryKey(typed);
}
