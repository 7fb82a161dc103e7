/** `cloudlet recovery key`: shows the recovery key, and asks for it back. */
import type { Config } from '../config/config.ts';
import { ask } from './ask.ts';
import { asOperator } from './operator-call.ts';

interface KeyAnswer {
  readonly recovery_key?: string;
  readonly taken: boolean;
}

export async function key(config: Config): Promise<number> {
  const path = '/api/admin/recovery-key';
  const shown = await asOperator(config, (call) => call<KeyAnswer>({ method: 'POST', path }));
  console.log(`The recovery key opens every recovery point of this cloud:\n\n  ${shown.recovery_key}\n`);
  console.log(
    'Keep it where this machine is not: on paper, in a password manager. It is shown until you prove',
  );
  console.log('to have it, and never again.\n');
  const typed = await ask('Type or paste it here once you have kept it (or press Enter to do so later): ');
  if (typed === '') return 0;
  await asOperator(config, (call) =>
    call<KeyAnswer>({ method: 'POST', path: `${path}/confirm`, body: { recovery_key: typed } }),
  );
  console.log('That is it. This machine has forgotten it.');
  return 0;
}
