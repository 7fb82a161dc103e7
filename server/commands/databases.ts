/** `cloudlet databases`: what is done with database servers while Cloudlet is stopped. */
import { isAppError } from '../platform/errors.ts';
import { type Command, UsageError } from './command.ts';
import { assertCloud, withClosedCloud } from './operator-call.ts';

const HELP = `Usage: cloudlet databases upgrade postgresql

Brings the data of PostgreSQL to the newest major version whose programs are on this host (of the set-up, or
installed). It needs the programs of both versions, room for a second copy of the data, and that Cloudlet is
stopped. The old data are kept for 7 days beside the new ones. If it fails, nothing has changed.
`;

export const DATABASES: Command = {
  help: HELP,
  run: async (config, { positionals }) => {
    if (positionals.join(' ') !== 'upgrade postgresql')
      throw new UsageError('expected upgrade postgresql; see cloudlet databases --help');
    assertCloud(config.dataDir);
    return withClosedCloud(config, async ({ upgradePostgresql }) => {
      const done = await upgradePostgresql().catch((error) => {
        if (!isAppError(error) || error.hint === undefined) throw error;
        throw new Error(`${error.message}. Fix: ${error.hint}`);
      });
      if (done === null)
        console.log('Nothing to upgrade: there are no data of PostgreSQL, or no newer major version.');
      else console.log(`Upgraded PostgreSQL from ${done.from} to ${done.to}. The old data stay for 7 days.`);
      return 0;
    });
  },
};
