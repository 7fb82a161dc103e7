/** `cloudlet recovery`: creates recovery points of the whole cloud and restores them anywhere. */
import type { Config } from '../../config/config.ts';
import { type Command, UsageError, type Words } from '../command.ts';
import { asOperator } from '../operator-call.ts';
import { ask } from '../terminal.ts';
import { account } from './recovery-account.ts';
import { compare } from './recovery-compare.ts';
import { drill } from './recovery-drill.ts';
import { cancel, create, fsck, get, list, removable, remove, status, undelete } from './recovery-points.ts';
import { restore } from './recovery-restore.ts';
import { retention, schedule } from './recovery-schedule.ts';
import { verify } from './recovery-verify.ts';

const HELP = `Usage: cloudlet recovery create
       cloudlet recovery list
       cloudlet recovery status
       cloudlet recovery get|verify POINT|latest|all
       cloudlet recovery drill [POINT|latest|all] [--with-key] [--key-file FILE]
       cloudlet recovery cancel|delete|undelete POINT
       cloudlet recovery schedule [show|off|set hourly|daily|weekly] [--at HH:MM] [--weekday DAY] [--keep RULES]
       cloudlet recovery retention --preview [--keep RULES]
       cloudlet recovery account POINT ACCOUNT --as USERNAME --email EMAIL [--preview]
       cloudlet recovery fsck
       cloudlet recovery removable
       cloudlet recovery key
       cloudlet recovery restore --from DIR_OR_URL --to EMPTY_DIR [--point ID|latest] [--key-file FILE] [--partial]
                                 [--revoke-all-keys]
       cloudlet recovery verify --from DIR_OR_URL [POINT|latest|all] [--key-file FILE]
       cloudlet recovery compare --from DIR_OR_URL --to RESTORED_DIR [POINT|latest] [--key-file FILE] [--sample]

create    creates a recovery point of the whole cloud and waits until it is complete.
list      lists the recovery points of this cloud.
status    shows whether this cloud could be restored if it were lost now, and any problems.
get       shows the details of a recovery point.
verify    reads all data of a recovery point and lists files that are missing or damaged. With --from it needs
          the recovery repository and the recovery key, but no running cloud; POINT defaults to latest.
drill     restores a recovery point to a scratch directory, starts a second, isolated cloud on it,
          compares it with the recovery point, and removes it. POINT defaults to latest.
          --with-key asks for the recovery key, or reads it from --key-file, and tries it.
cancel    cancels the creation, verification or drill of a recovery point.
delete    deletes a recovery point. It can be undeleted for 72 hours (CLOUDLET_RECOVERY_UNDELETE_HOURS).
undelete  undoes the deletion of a recovery point.
schedule  shows or sets when recovery points are created automatically. --at is in UTC; --keep, such as
          daily=7,weekly=4,monthly=6, is how many of the last, hourly, daily, weekly, monthly are kept.
retention shows which recovery points the keep rules keep, with the reasons, and which would be deleted.
account   restores one account of a recovery point, named by user name or number, as a new account with its
          buckets, databases and machines; live accounts stay as they are. Prints the first key of the new one.
          If a resource was refused, or the command was interrupted, run it again to continue.
fsck      checks and repairs the recovery repository, and removes pieces that no recovery point uses.
removable lists the files in an S3 bucket that Cloudlet may not remove and no longer needs. Remove them with a
          key that may do so, before the next recovery point is created; then run fsck.
key       shows the recovery key and asks you to confirm it. Without the key a lost cloud cannot be restored.
restore   restores a recovery point to a data directory. It needs the recovery repository and the recovery key,
          but no running cloud. If interrupted, run it again to resume.
          --partial skips files that are missing or damaged, and lists them.
          --revoke-all-keys revokes all keys of the restored cloud.
compare   compares a restored data directory with its recovery point, before the first start: rows of tables,
          accounts, buckets, machines and databases by name, the ledger, and every byte of every file, or with
          --sample of 64 files of each kind. Exit code 0: the same; 1: something differs; 2: not compared.
`;

export const RECOVERY: Command = {
  help: HELP,
  options: ['from', 'to', 'point', 'key-file', 'at', 'weekday', 'keep', 'as', 'email'],
  flags: ['partial', 'revoke-all-keys', 'with-key', 'preview', 'sample'],
  run: async (config, words) => {
    const [verb, ...rest] = words.positionals;
    const work = verb === undefined || !Object.hasOwn(VERBS, verb) ? undefined : VERBS[verb];
    if (work === undefined || rest.length > mostWords(work)) {
      throw new UsageError(`expected ${Object.keys(VERBS).join(', ')}; see cloudlet recovery --help`);
    }
    return work(config, words);
  },
};

type Verb = (config: Config, words: Words) => Promise<number>;
const VERBS: Readonly<Record<string, Verb>> = {
  create,
  list,
  get,
  status,
  verify,
  drill,
  cancel,
  delete: remove,
  undelete,
  schedule,
  retention,
  account,
  fsck,
  removable,
  key,
  restore,
  compare,
};
const mostWords = (work: Verb) => (work === schedule || work === account ? 2 : OF_A_POINT.has(work) ? 1 : 0);
const OF_A_POINT: ReadonlySet<Verb> = new Set([get, verify, drill, cancel, remove, undelete, compare]);

interface RecoveryKey {
  readonly recovery_key?: string;
  readonly taken: boolean;
}

export async function key(config: Config): Promise<number> {
  const path = '/api/admin/recovery-key';
  const shown = await asOperator(config, (call) => call<RecoveryKey>({ method: 'POST', path }));
  console.log(`The recovery key decrypts all recovery points of this cloud:\n\n  ${shown.recovery_key}\n`);
  console.log('Store it outside this host, on paper or in a password manager. It is shown until you confirm');
  console.log('that you have it, and never again.\n');
  const typed = await ask(
    'When you have stored it, enter it here to confirm (or press Enter to do so later): ',
  );
  if (typed === '') return 0;
  await asOperator(config, (call) =>
    call<RecoveryKey>({ method: 'POST', path: `${path}/confirm`, body: { recovery_key: typed } }),
  );
  console.log('The recovery key is confirmed. It is no longer stored on this host.');
  return 0;
}
