/** `cloudlet databases`: what is done with database servers while Cloudlet is stopped. */
import { isAppError } from '../platform/errors.ts';
import { withClosedCloud } from './closed-cloud.ts';
import { type Command, UsageError } from './command.ts';
import { assertCloud } from './operator-call.ts';

const HELP = `Usage: cloudlet databases upgrade postgresql

Upgrades the PostgreSQL data to the newest major version installed on this host, by the set-up or by the
operating system. It requires the programs of both versions and free disk space for a second copy of the data,
and Cloudlet must be stopped. The old data is kept for 7 days. If the upgrade fails, nothing is changed.
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
        console.log(
          'Nothing to upgrade: there is no PostgreSQL data, or no newer major version is installed.',
        );
      else
        console.log(`Upgraded PostgreSQL from ${done.from} to ${done.to}. The old data is kept for 7 days.`);
      return 0;
    });
  },
};
