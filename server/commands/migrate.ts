/**
 * `cloudlet migrate`: moves the metadata of a stopped cloud to PostgreSQL, or back into the data directory.
 */
import type { Config } from '../config/config.ts';
import { lockDirectory } from '../drivers/directory-lock.ts';
import { moveToPostgresql, moveToSqlite } from '../drivers/metadata-postgresql/move-metadata.ts';
import { systemClock } from '../platform/clock.ts';
import { plural } from '../platform/plural.ts';
import { type Command, UsageError } from './command.ts';

const HELP = `Usage: cloudlet migrate --to postgresql | sqlite

Moves the metadata of this cloud: accounts, keys, the ledger, buckets, objects and small files. Stop Cloudlet first.

  --to postgresql   from the data directory to the empty database in CLOUDLET_METADATA_URL
  --to sqlite       from the database in CLOUDLET_METADATA_URL to the data directory

Every row is compared before anything counts as moved. The old copy stays, but can no longer be started. A move that was interrupted can be run again. Large files, machines and databases stay where they are.
`;

export const MIGRATE: Command = {
  help: HELP,
  options: ['to'],
  run: async (config, { positionals, values }) => {
    const { to } = values;
    if (positionals.length > 0 || (to !== 'postgresql' && to !== 'sqlite')) {
      throw new UsageError('migrate: expected --to postgresql or --to sqlite; see cloudlet migrate --help');
    }
    if (config.metadataUrl === '') {
      throw new UsageError('migrate: set CLOUDLET_METADATA_URL to the PostgreSQL database');
    }
    return move(config, to);
  },
};

async function move(
  { dataDir: directory, metadataUrl: url }: Config,
  to: 'postgresql' | 'sqlite',
): Promise<number> {
  const lock = lockDirectory(directory);
  try {
    const now = systemClock.now();
    const tables = await (to === 'sqlite' ? moveToSqlite : moveToPostgresql)({ directory, url, now });
    for (const { name, rows } of tables) if (rows > 0) console.log(`${name}: ${plural(rows, 'row')}`);
    console.log(
      to === 'sqlite'
        ? `Moved to ${directory}. Start Cloudlet without CLOUDLET_METADATA_URL.`
        : 'Moved to PostgreSQL. Start Cloudlet with CLOUDLET_METADATA_URL.',
    );
    return 0;
  } finally {
    lock.release();
  }
}
