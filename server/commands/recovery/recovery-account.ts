/** `cloudlet recovery account`: restores one account of a recovery point as a new account. */
import type { Config } from '../../config/config.ts';
import { plural } from '../../platform/plural.ts';
import type { RestoredAccount, RestoredItem } from '../../recovery/schema.ts';
import { formatSize } from '../../storage/listing/entries.ts';
import { UsageError, type Words } from '../command.ts';
import { askServer } from '../operator-call.ts';

/** Exit code 1 unless everything was restored or, in a preview, listed. */
export async function account(config: Config, { positionals, values }: Words): Promise<number> {
  const [, point, name] = positionals;
  const { as: username, email } = values;
  if (point === undefined || name === undefined || username === undefined || email === undefined) {
    throw new UsageError(
      'account needs POINT ACCOUNT --as USERNAME --email EMAIL; see cloudlet recovery --help',
    );
  }
  const words = [point, name].map(encodeURIComponent);
  const path = `/api/disaster-recovery/points/${words[0]}/accounts/${words[1]}/restore`;
  const body = { username, email, preview: values.preview !== undefined };
  const done = await askServer(config, (call) => call<RestoredAccount>({ method: 'POST', path, body }));
  for (const item of done.items) tellItem(item, done.preview);
  const what = `${plural(done.items.length, 'resource')} of ${done.from.username}`;
  if (done.preview) {
    console.log(`${what} would be restored as ${username}; nothing was changed`);
    return 0;
  }
  const { account_id: id, api_key: key } = done.account;
  if (key !== null) console.log(`API key of ${username}, shown once: ${key}`);
  if (done.state === 'complete') console.log(`${what} restored as ${username} (account ${id})`);
  else
    console.log(
      `Some resources of ${done.from.username} are not yet restored as ${username} (account ${id}): run this again to continue`,
    );
  return done.state === 'complete' ? 0 : 1;
}

function tellItem({ kind, name, size, made_id, lacks, refusal }: RestoredItem, isPreview: boolean): void {
  const state = refusal ?? (isPreview && made_id === null ? 'would be restored' : `is ${made_id}`);
  const bytes = size === null ? '' : formatSize(size);
  console.log(`  ${kind.padEnd(10)}${name.padEnd(24)}${bytes.padStart(12)}  ${state}`);
  for (const each of lacks) console.log(`  ${''.padEnd(48)}lacks ${each}`);
}
