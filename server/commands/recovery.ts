/** `cloudlet recovery`: points from which the whole cloud comes back, made here and restored anywhere. */
import type { Config } from '../config/config.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { asOperator } from './operator-call.ts';
import { ask } from './recovery-key-text.ts';
import { cancel, create, fsck, get, list, remove, status, undelete } from './recovery-points.ts';
import { restore } from './recovery-restore.ts';
import { verify } from './recovery-verify.ts';

const HELP = `Usage: cloudlet recovery create
       cloudlet recovery list
       cloudlet recovery status
       cloudlet recovery get|verify POINT|latest|all
       cloudlet recovery cancel|delete|undelete POINT
       cloudlet recovery fsck
       cloudlet recovery key
       cloudlet recovery restore --from DIR --to EMPTY_DIR [--point ID|latest] [--key-file FILE] [--partial]
                                 [--revoke-all-keys]
       cloudlet recovery verify --from DIR [POINT|latest|all] [--key-file FILE]

create    makes a recovery point of the whole cloud and waits for its end.
list      lists the points of this cloud.
status    says whether this cloud could be had back if it were lost now, and what is in the way.
get       shows all that is known of a point.
verify    reads every byte of a point, or of all, and names each file that is missing or damaged. With --from
          it needs the points and the recovery key, and no running cloud; it reads the newest if none is named.
cancel    stops making a point, or verifying one.
delete    deletes a point. undelete has it back, for 72 hours (CLOUDLET_RECOVERY_UNDELETE_HOURS).
fsck      makes the list agree with what is there, and frees what no point needs.
key       shows the recovery key, and asks for it back. Without it a lost cloud cannot be restored.
restore   makes a data directory of a point. It needs the points and the recovery key, and no running cloud.
          Run again after a kill, it goes on where it was.
          --partial goes on without what is missing or damaged, and lists it.
          --revoke-all-keys leaves no key of the point valid.
`;

export const RECOVERY: Command = {
  help: HELP,
  options: ['from', 'to', 'point', 'key-file'],
  flags: ['partial', 'revoke-all-keys'],
  run: async (config, words) => {
    const [verb, ...rest] = words.positionals;
    const work = verb === undefined || !Object.hasOwn(VERBS, verb) ? undefined : VERBS[verb];
    if (work === undefined || rest.length > (OF_A_POINT.has(work) ? 1 : 0)) {
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
  cancel,
  delete: remove,
  undelete,
  fsck,
  key,
  restore,
};
const OF_A_POINT: ReadonlySet<Verb> = new Set([get, verify, cancel, remove, undelete]);

interface RecoveryKey {
  readonly recovery_key?: string;
  readonly taken: boolean;
}

export async function key(config: Config): Promise<number> {
  const path = '/api/admin/recovery-key';
  const shown = await asOperator(config, (call) => call<RecoveryKey>({ method: 'POST', path }));
  console.log(`The recovery key opens every recovery point of this cloud:\n\n  ${shown.recovery_key}\n`);
  console.log(
    'Keep it where this machine is not: on paper, in a password manager. It is shown until you prove',
  );
  console.log('to have it, and never again.\n');
  const typed = await ask('Type or paste it here once you have kept it (or press Enter to do so later): ');
  if (typed === '') return 0;
  await asOperator(config, (call) =>
    call<RecoveryKey>({ method: 'POST', path: `${path}/confirm`, body: { recovery_key: typed } }),
  );
  console.log('That is it. This machine has forgotten it.');
  return 0;
}
