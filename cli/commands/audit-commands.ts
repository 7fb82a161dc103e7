/** The audit log. Administrators see all entries, owners those of their account. */
import type { AuditEntry, Cloud } from '../../sdk/index.ts';
import type { Command, Invocation, Option } from '../command.ts';
import { EXIT, UsageError } from '../failures.ts';
import { counted } from '../output.ts';

const FILTERS: Readonly<Record<string, Option>> = {
  account: { value: 'ID', summary: 'entries of another account, or `all` (administrators and auditors)' },
  actor: { value: 'NAME', summary: 'name or id of the account that acted' },
  action: { value: 'CALL', summary: 'operation, such as createBucket' },
  target: { value: 'THING', summary: 'id or name of the resource' },
  outcome: { value: 'WORD', summary: 'done, refused or failed' },
  from: { value: 'TIME', summary: 'entries from this time on: YYYY-MM-DD HH:MM:SS, UTC' },
  to: { value: 'TIME', summary: 'entries before this time' },
};
const OUTCOMES = ['done', 'refused', 'failed'] as const;
const FEW = 100;

function asked({ session, options }: Invocation): ReturnType<Cloud['listAudit']> {
  const word = options.text('outcome');
  const outcome = OUTCOMES.find((each) => each === word);
  if (word !== undefined && outcome === undefined) {
    throw new UsageError(`no outcome ${word}: use ${OUTCOMES.join(', ')}`);
  }
  const given = {
    account_id: options.text('account'),
    actor: options.text('actor'),
    action: options.text('action'),
    target: options.text('target'),
    outcome,
    from: options.text('from'),
    to: options.text('to'),
  };
  const present = Object.entries(given).filter(([, value]) => value !== undefined);
  return session().cloud.listAudit(Object.fromEntries(present));
}

const codeOf = ({ outcome, code, times }: AuditEntry) =>
  `${code === '' ? outcome : `${outcome}: ${code}`}${times > 1 ? ` (${times} times)` : ''}`;

/** In brackets what is no account; no user name has them. */
function actorOf({ actor, via }: AuditEntry): string {
  if (actor === '') return `(${via})`;
  return via === 'control' || via === 'cloud' ? `(${actor})` : actor;
}

export const AUDIT_COMMANDS: readonly Command[] = [
  {
    name: 'audit ls',
    words: '',
    summary: 'show who did what, newest first',
    options: { ...FILTERS, limit: { value: 'N', summary: `show at most N entries (default ${FEW})` } },
    run: async (call) => {
      const { items } = await asked(call).page({
        limit: Math.min(1000, call.options.count('limit', FEW, 1)),
      });
      call.output.table(items, ['AT', 'WHO', 'ACTION', 'TARGET', 'OUTCOME', 'ADDRESS'], (entry) => {
        const { at, action, target, address } = entry;
        return [at, actorOf(entry), action, target, codeOf(entry), address];
      });
    },
  },
  {
    name: 'audit export',
    words: '',
    summary: 'print all entries, newest first, as one JSON object per line',
    options: FILTERS,
    run: async (call) => {
      for await (const entry of asked(call)) call.output.json(entry);
    },
  },
  {
    name: 'audit verify',
    words: '',
    summary: 'verify that no sealed entry was changed or removed',
    options: {
      head: {
        value: 'RANGE:HASH',
        summary: 'also verify that this head, printed earlier, is still in the log',
      },
    },
    run: async ({ session, options, output }) => {
      const head = options.text('head');
      const found = await session().cloud.adminVerifyAudit(head === undefined ? {} : { head });
      const { ok, rows, ranges, unsealed, head: last, fault } = found;
      output.one(found, () => [
        ok
          ? `${counted(ranges, 'range')} with ${counted(rows, 'row')} verified; ${counted(unsealed, 'row')} not sealed yet`
          : `The audit log is damaged: ${fault}`,
        ...(last === null ? [] : [`head ${last.range}:${last.hash}`]),
      ]);
      return ok ? EXIT.ok : EXIT.failure;
    },
  },
];
