/** `cloudlet databases`: maintenance of database servers while Cloudlet is stopped. */
import { ABOUT_ENGINES } from '../drivers/engines/all-engines.ts';
import { isAppError } from '../platform/errors.ts';
import { withClosedCloud } from './closed-cloud.ts';
import { type Command, UsageError } from './command.ts';
import { assertCloud } from './operator-call.ts';

const UPGRADABLE = ABOUT_ENGINES.filter(({ canUpgrade }) => canUpgrade);
const NAMES = UPGRADABLE.map(({ name }) => name).join('|');
const TITLES = UPGRADABLE.map(({ title }) => title).join(' or ');

const HELP = `Usage: cloudlet databases upgrade ${NAMES}

Upgrades the ${TITLES} data to the newest major version installed on this host, by the set-up or by the
operating system. It requires the programs of both versions and free disk space for a second copy of the data,
and Cloudlet must be stopped. The old data is kept for 7 days. If the upgrade fails, nothing is changed.
`;

export const DATABASES: Command = {
  help: HELP,
  run: async (config, { positionals }) => {
    const about = UPGRADABLE.find(({ name }) => positionals.join(' ') === `upgrade ${name}`);
    if (about === undefined)
      throw new UsageError(
        `expected upgrade ${NAMES}; \`cloudlet db ls\` lists databases; see cloudlet databases --help`,
      );
    const { name, title } = about;
    assertCloud(config.dataDir);
    return withClosedCloud(config, async ({ upgradeEngine }) => {
      const done = await upgradeEngine(name).catch((error) => {
        if (!isAppError(error) || error.hint === undefined) throw error;
        throw new Error(`${error.message}. Fix: ${error.hint}`);
      });
      if (done === null)
        console.log(`Nothing to upgrade: there is no ${title} data, or no newer major version is installed.`);
      else console.log(`Upgraded ${title} from ${done.from} to ${done.to}. The old data is kept for 7 days.`);
      return 0;
    });
  },
};
