/** Public schemas of the audit log. */
import { Paging } from '../http/list-page.ts';
import { namedObject, Type } from '../platform/json/json-schema.ts';

const TIME = 'YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339';
const OUTCOMES = ['done', 'refused', 'failed'];
const Outcome = Type.Enum(OUTCOMES, {
  description: '`refused`: it had no effect; `failed`: a fault of the cloud, so it may have had one',
});

export const AuditEntryView = namedObject('AuditEntry', {
  id: Type.Integer(),
  at: Type.String(),
  account_id: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Whose things are concerned; null: those of the cloud, or nobody known',
  }),
  actor_id: Type.Union([Type.Integer(), Type.Null()], {
    description: 'The account that acted; null: the operator on the host, or nobody known',
  }),
  actor: Type.String({ description: 'Its name then; `operator`; empty: nobody known' }),
  via: Type.String({ description: '`key`, `session`, `control` (the operator on the host) or `nobody`' }),
  credential: Type.String({ description: 'Id of the key; empty for sessions' }),
  address: Type.String(),
  user_agent: Type.String(),
  action: Type.String({ description: 'operationId of the call; of S3 with the prefix `s3`' }),
  target: Type.String({ description: 'Id or name of the thing' }),
  outcome: Outcome,
  status: Type.Integer(),
  code: Type.String({ description: 'Error code; empty: none' }),
  request_id: Type.String(),
  detail: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
    description: 'Some members of the call, never a secret',
  }),
  times: Type.Integer({
    description:
      'Calls that this entry stands for: refusals of one sender are counted once they are very many',
  }),
});

const Text = (description: string) => Type.Optional(Type.String({ maxLength: 300, description }));

export const AuditQuery = Type.Object({
  account_id: Text('Administrators only: another account, or `all`. Default: your own'),
  actor: Text('Id or name of the account that acted'),
  action: Text('operationId of the call'),
  target: Text('Id or name of the thing'),
  outcome: Type.Optional(Outcome),
  from: Text(TIME),
  to: Text(`${TIME}; exclusive`),
  format: Type.Optional(
    Type.Enum(['json', 'jsonl'], { description: '`jsonl`: one entry on each line, all without `limit`' }),
  ),
  ...Paging,
});

export const VerifyQuery = Type.Object({
  head: Text('RANGE:HASH, shown by an earlier call and kept elsewhere: it must still be part of the log'),
});

export const AuditVerificationView = namedObject('AuditVerification', {
  ok: Type.Boolean({ description: 'No sealed entry was changed or taken out' }),
  ranges: Type.Integer(),
  rows: Type.Integer({ description: 'Sealed entries that were read' }),
  removed: Type.Integer({ description: 'Ranges whose entries became too old; their hashes are kept' }),
  unsealed: Type.Integer({ description: 'Entries that are not sealed yet: of the last minutes' }),
  head: Type.Union([namedObject('AuditHead', { range: Type.Integer(), hash: Type.String() }), Type.Null()], {
    description: 'The newest hash: write it down elsewhere to find out if all was replaced',
  }),
  fault: Type.Union([Type.String(), Type.Null()], { description: 'What is wrong; null: nothing' }),
});
