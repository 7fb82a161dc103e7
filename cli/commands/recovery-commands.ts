/** Recovery points of the whole cloud, for administrators; the cloud refuses others. */
import type { Cloud, RecoveryPoint } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { EXIT, UsageError } from '../failures.ts';
import { sizeText } from '../output.ts';
import { about, all, assertMeant, linesOf, YES } from '../resources.ts';

const LONGEST_WAIT_SECONDS = 60;
const WAIT = { wait: { summary: 'wait until it has finished' } } as const;

const findPoint = (cloud: Cloud, word: string) => cloud.getRecoveryPoint(word);
const isWorking = ({ state, verifying_percent }: RecoveryPoint) =>
  state === 'creating' || verifying_percent !== null;

/**
 * Prints the point, when waiting after its work has ended; a point that cannot be restored counts as a
 * failure.
 */
async function tell(begun: RecoveryPoint, { output, options, session }: Invocation) {
  let point = begun;
  const { cloud } = session();
  while (options.has('wait') && isWorking(point)) {
    output.note(`${point.point_id}: ${point.verifying_percent ?? point.percent} %`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    point = await cloud.getRecoveryPoint(point.point_id);
  }
  output.one(point, () => [`${point.point_id} is ${point.state}`]);
  return point.state === 'failed' || point.state === 'damaged' ? EXIT.failure : EXIT.ok;
}

export const RECOVERY_COMMANDS: readonly Command[] = [
  {
    name: 'recovery ls',
    words: '',
    summary: 'list the recovery points, oldest first',
    run: async ({ session, output }) => {
      const points = await all(session().cloud.listRecoveryPoints());
      output.table(points, ['POINT', 'STATE', 'CREATED', 'VERIFIED', 'SIZE', 'NEW'], (point) => {
        const { point_id, state, created_at, verified_at, size_bytes, stored_bytes } = point;
        return [point_id, state, created_at, verified_at, sizeText(size_bytes), sizeText(stored_bytes)];
      });
    },
  },
  {
    name: 'recovery show',
    words: 'POINT',
    summary: 'show a recovery point',
    run: about(findPoint, async (point, { output }) => output.one(point, () => linesOf(point))),
  },
  {
    name: 'recovery create',
    words: '',
    summary: 'create a recovery point of the whole cloud',
    options: WAIT,
    run: async (call) => {
      const wait = call.options.has('wait') ? { wait: LONGEST_WAIT_SECONDS } : {};
      return tell(await call.session().cloud.createRecoveryPoint(wait), call);
    },
  },
  {
    name: 'recovery verify',
    words: 'POINT',
    summary: 'verify a recovery point by reading every byte',
    options: WAIT,
    run: async (call) => tell(await call.session().cloud.verifyRecoveryPoint(call.words[0] ?? ''), call),
  },
  {
    name: 'recovery cancel',
    words: 'POINT',
    summary: 'cancel the creation or verification of a recovery point',
    run: async (call) => tell(await call.session().cloud.cancelRecoveryPoint(call.words[0] ?? ''), call),
  },
  {
    name: 'recovery rm',
    words: 'POINT',
    summary: 'delete a recovery point; recovery undelete can restore it for 72 hours',
    options: YES,
    run: about(findPoint, async ({ point_id, created_at }, { cloud, output, ...call }) => {
      await assertMeant({ ...call, output }, `Delete the recovery point of ${created_at}?`);
      const deleted = await cloud.deleteRecoveryPoint(point_id);
      output.one(deleted, () => [`${point_id} will be removed permanently at ${deleted.deletes_at} UTC`]);
    }),
  },
  {
    name: 'recovery account',
    words: 'POINT ACCOUNT',
    summary: 'restore an account from a recovery point as a new account; run again to continue',
    options: {
      as: { value: 'USERNAME', summary: 'username of the new account (required)' },
      email: { value: 'EMAIL', summary: 'email address of the new account (required)' },
      preview: { summary: 'list what would be restored, without restoring' },
    },
    run: restoreAccount,
  },
  {
    name: 'recovery undelete',
    words: 'POINT',
    summary: 'restore a deleted recovery point',
    run: async (call) => tell(await call.session().cloud.undeleteRecoveryPoint(call.words[0] ?? ''), call),
  },
];

async function restoreAccount({ words: [point = '', account = ''], options, session, output }: Invocation) {
  const [username, email] = [options.text('as'), options.text('email')];
  if (username === undefined || email === undefined)
    throw new UsageError('give --as USERNAME and --email EMAIL');
  const body = { username, email, preview: options.has('preview') };
  const done = await session().cloud.restoreAccount(point, account, body, { takesLong: true });
  output.one(done, () => [
    ...done.items.map(({ kind, name, made_id, refusal }) => {
      return `${kind} ${name} ${refusal ?? (made_id === null ? 'would be restored' : `is ${made_id}`)}`;
    }),
    ...done.items.flatMap(({ name, lacks }) => lacks.map((each) => `${name} lacks ${each}`)),
    ...(done.account.api_key === null ? [] : [`api key ${done.account.api_key}`]),
    done.preview ? 'nothing was changed' : `${username} is ${done.state}`,
  ]);
  return done.state === 'partial' ? EXIT.failure : EXIT.ok;
}
